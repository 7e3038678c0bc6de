// The results of an evaluation.

import { h } from "./dom.js";
import { plural } from "./format.js";
import { badge, breakable, RESULTS } from "./parts.js";
import { diff } from "./diff.js";

// OBJECTS are the results of objects, shown as verdicts.
const OBJECTS = { allow: "allowed", deny: "denied", error: "error", unchecked: "unchecked" };
const WORDS = { pass: "Pass", fail: "Fail", warn: "Warning", error: "Error", skip: "Skipped" };

const fact = (name, value) => value && [h("dt", {}, name), h("dd", {}, breakable(value))];

const reason = (it, said) => h("li", { class: "reason" },
  it.message && it.message !== said && h("p", {}, it.message),
  h("dl", {}, fact("At", it.where), fact("Rule", it.path), fact("Expected", it.expected), fact("Found", it.found), fact("Code", it.code), fact("Next", it.hint)));

const image = (it) => h("li", { class: "of-image" },
  h("p", {}, badge(RESULTS[it.result], WORDS[it.result]), " ", h("code", { class: "name" }, breakable(it.image)), h("small", {}, " ", it.container)),
  h("dl", {}, fact("At", it.path)), h("ul", { class: "reasons" }, (it.reasons || []).map((r) => reason(r))));

const change = (it, word) => h("details", { class: "change", open: true }, h("summary", {}, word + " ", h("code", {}, breakable(it.name))), diff(it.before || "", it.after));

function rule(it) {
  const said = it.message || "";
  const verdict = it.result === "fail" && it.audit ? "warned" : RESULTS[it.result];
  const notes = [it.audit && "audit", it.changed && it.kind === "mutate" && "changes the object", it.exception && "exception " + it.exception].filter(Boolean);
  return h("li", { class: "rule", "data-result": it.result },
    h("p", { class: "of" }, badge(verdict, WORDS[it.result]), h("strong", {}, breakable(it.policy)), it.rule && h("span", {}, breakable(it.rule)),
      h("small", {}, [it.kind, ...notes].join(" · "))),
    said && !(it.images || []).length && h("p", { class: "why" }, said),
    (it.reasons || []).length > 0 && it.result !== "skip" && h("ul", { class: "reasons" }, it.reasons.map((r) => reason(r, said))),
    (it.images || []).length > 0 && h("ul", {}, it.images.map(image)),
    (it.generates || []).map((c) => change(c, c.before ? "Generates, in place of the one that is there:" : "Generates")),
    (it.mutates || []).map((c) => change(c, "Changes")));
}

function object(it) {
  const heard = new Set(it.rules.map((r) => r.message));
  const own = (it.reasons || []).filter((text) => !heard.has(text));
  const order = ["fail", "error", "warn", "pass", "skip"];
  const sorted = [...it.rules].sort((a, b) => order.indexOf(a.result) - order.indexOf(b.result));
  return h("section", { class: "card object", "data-result": it.result },
    h("div", { class: "row" }, h("h2", {}, breakable([it.kind, it.namespace, it.name].filter(Boolean).join("/"))), badge(OBJECTS[it.result] || "error")),
    own.map((text) => h("p", { class: "why" }, text)),
    it.mutation && change(it.mutation, "Mutated"),
    it.rules.length === 0 ? h("p", { class: "muted" }, "No rule matches it.") : h("ul", { class: "rules-of" }, sorted.map(rule)));
}

// summary is the result in a sentence.
export function summary(found) {
  if (!found.objects.length) return "Nothing was evaluated";
  const counts = Object.entries({ deny: "denied", error: "could not be verified", allow: "allowed", unchecked: "unchecked" })
    .map(([result, word]) => [found.objects.filter((o) => o.result === result).length, word]).filter(([n]) => n > 0);
  return plural(found.objects.length, "object") + ": " + counts.map(([n, word]) => n + " " + word).join(", ");
}

// results shows an evaluation.
export const results = (found) => [
  h("h2", { class: "summary" }, summary(found)),
  (found.errors || []).map((e) => h("div", { class: "notice wrong", role: "alert" },
    h("strong", {}, e.in ? e.in[0].toUpperCase() + e.in.slice(1) : "Documents", " cannot be read"), h("p", {}, e.message))),
  (found.warnings || []).map((text) => h("p", { class: "notice" }, text)),
  found.objects.map(object),
];

// failure shows a request without results: nothing is decided then.
export const failure = (message) => [
  h("h2", { class: "summary" }, "Could not be verified"),
  h("p", { class: "notice wrong", role: "alert" }, message),
];

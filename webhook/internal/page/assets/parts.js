// Parts of several pages.

import { h, put, s, say } from "./dom.js";
import { ago, at, known, middle, short } from "./format.js";

export const VERDICTS = {
  denied: { word: "Denied", about: "a policy forbids it", path: "M5 5l6 6M11 5l-6 6" },
  error: { word: "Error", about: "could not be verified", path: "M6 6.2a2 2 0 1 1 2.600 1.900c-.4.2-.6.500-.6 1M8 11.300v.01" },
  warned: { word: "Warned", about: "allowed, with a warning", path: "M8 4.500v4M8 11.200v.01" },
  unchecked: { word: "Unchecked", about: "no policy matches it", path: "M5 8h6" },
  allowed: { word: "Allowed", about: "verified as policies require", path: "M4.800 8.300l2.200 2.200 4.300-4.700" },
};

export const icon = (verdict) => s("svg", { class: "icon v-" + verdict, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" },
  s("circle", { cx: 8, cy: 8, r: 7.5 }), s("path", { d: VERDICTS[verdict].path }));

export const badge = (verdict, word) => VERDICTS[verdict]
  ? h("span", { class: "badge v-" + verdict, title: VERDICTS[verdict].about }, icon(verdict), word || VERDICTS[verdict].word)
  : h("span", { class: "badge" }, verdict);

// RESULTS are the results of rules, shown as verdicts.
export const RESULTS = { pass: "allowed", fail: "denied", warn: "warned", error: "error", skip: "unchecked" };

export const time = (value) => known(value)
  ? h("time", { datetime: value, title: at(value), class: "num" }, ago(value))
  : h("span", { class: "muted" }, "never");

// breakable is a name that breaks over lines at its joints alone.
export const breakable = (text) => (String(text).match(/[^/:@._,=-]*[/:@._,=-]*/g) || []).filter(Boolean).map((part, n) => n ? [h("wbr"), part] : part);

const HEX = /(?:(?:sha256|sha512):)?[0-9a-f]{40,}/g;

// prose is a sentence in which digests are short, and long names break at their joints.
export function prose(text) {
  const words = (part) => part.split(/(\s+)/).map((word) => word.length > 12 ? breakable(word) : word);
  const out = [];
  let at = 0;
  for (const found of String(text).matchAll(HEX)) {
    out.push(words(text.slice(at, found.index)), h("code", { class: "hex", title: found[0] }, short(found[0])));
    at = found.index + found[0].length;
  }
  out.push(words(String(text).slice(at)));
  return out;
}

// causeOf says which container or rule refused an object.
export const causeOf = (c) => [c.container ? ["container ", h("strong", {}, breakable(middle(c.container, 60)))] : c.policy ? ["policy ", h("strong", {}, breakable(middle(c.policy, 80))), c.rule && [", rule ", breakable(middle(c.rule, 60))]] : "the object as a whole", c.code && [" (", h("code", { class: "code" }, c.code), ")"]];

// copyable is a long name cut short, with a button that copies the whole.
export function copyable(text, shown, what) {
  const button = h("button", {
    type: "button", class: "copy", "aria-label": "Copy " + what, title: "Copy " + what,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.classList.add("done");
        say(what + " copied");
        setTimeout(() => button.classList.remove("done"), 1500);
      } catch {
        say("The browser does not let the page copy; the whole " + what + " is selected instead.");
        const range = document.createRange();
        put(code, breakable(text));
        range.selectNodeContents(code);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      }
    },
  }, s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, s("path", { class: "sheets", d: "M5.500 5.500h7v8h-7zM3.500 10.500v-8h7" }), s("path", { class: "tick", d: "M3.500 8.500l3 3 6-6.500" })));
  const code = h("code", { title: text }, shown);
  return h("span", { class: "copyable" }, code, button);
}

export const digest = (text, keep) => text ? copyable(text, short(text, keep), "digest") : h("span", { class: "muted" }, "no digest known");

// heading is the page's title, which takes the focus when the page opens.
export const heading = (text, ...beside) => h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, text), beside);

export const empty = (title, ...words) => h("div", { class: "state" },
  s("svg", { viewBox: "0 0 64 40", width: 96, height: 60, "aria-hidden": "true", class: "drawing" },
    s("path", { d: "M4 30q7-5 14 0t14 0 14 0 14 0M10 37q5.500-4 11 0t11 0 11 0 11 0" }), s("path", { d: "M20 24l3 6M44 24l-3 6M18 20h28l-2 5H20zM31 20V6l10 9h-10" })),
  h("h2", {}, title), h("p", {}, words));

export const loading = (lines = 6) => h("div", { class: "loading", role: "status" }, h("span", { class: "hidden" }, "Loading"),
  Array.from({ length: lines }, () => h("div", { class: "bone", "aria-hidden": "true" })));

export const failed = (error, again) => h("div", { class: "state", role: "alert" },
  s("svg", { viewBox: "0 0 64 40", width: 96, height: 60, "aria-hidden": "true", class: "drawing" },
    s("path", { d: "M4 30q7-5 14 0t14 0 14 0 14 0" }), s("path", { d: "M14 14a18 18 0 0 1 36 0M20 17a12 12 0 0 1 24 0M26 20a6 6 0 0 1 12 0" }), s("path", { class: "stroke-denied", d: "M16 3l32 24" })),
  h("h2", {}, error.status === 0 ? "No response" : error.status === 403 ? "Access denied" : error.status === 404 ? "Not found" : "The request failed"),
  h("p", {}, error.message),
  again && h("button", { type: "button", class: "button", onclick: again }, "Try again"));

// pager leads through a list; to(offset) is the address of a part of it.
export function pager(total, offset, limit, to) {
  const last = Math.min(offset + limit, total);
  const link = (label, target, rel) => target === null
    ? h("span", { class: "button off", "aria-hidden": "true" }, label)
    : h("a", { class: "button", href: to(target), rel }, label);
  return h("nav", { class: "pager", "aria-label": "Parts of the list" },
    link("Previous", offset > 0 ? Math.max(0, offset - limit) : null, "prev"),
    h("span", { class: "num" }, total === 0 ? "none" : `${(offset + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${total.toLocaleString("en")}`),
    link("Next", last < total ? offset + limit : null, "next"));
}

// address is a path with its parameters that are not empty.
export function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== 0) query.set(name, value);
  }
  return path + (query.size ? "?" + query : "");
}

// chips are the verdicts to choose from, with how many there are of each.
export function chips(tally, chosen, to) {
  const all = Object.values(tally).reduce((sum, n) => sum + n, 0);
  const chip = (value, label, n) => h("a", { class: "chip" + (value ? " v-" + value : ""), href: to(value), "aria-current": chosen === value ? "true" : undefined }, value && icon(value), label, h("span", { class: "num" }, n.toLocaleString("en")));
  return h("nav", { class: "chips", "aria-label": "By verdict" }, chip("", "All", all),
    Object.keys(VERDICTS).filter((v) => tally[v] > 0 || v === chosen).map((v) => chip(v, VERDICTS[v].word, tally[v])));
}

// policyPath is the address of a policy's page.
export const policyPath = (id) => address("/policy", { id });

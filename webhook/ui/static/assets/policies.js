// The policies: mode, readiness, matches, and results over time.

import { h, put, s } from "./dom.js";
import { get } from "./api.js";
import { at, count, known, middle, plural, start } from "./format.js";
import { RESULTS, address, badge, breakable, empty, heading, policyPath, prose, time } from "./parts.js";

export const WORDS = { pass: "Pass", fail: "Fail", warn: "Warn", error: "Error", skip: "Skip" };

const total = (r) => Object.keys(WORDS).reduce((n, word) => n + (r[word] || 0), 0);

export async function policies(page) {
  const list = await get("policies", {}, page.signal);
  page.ready();
  page.about(list.about);
  const order = (p) => (p.document && p.document.state === "broken" ? 0 : p.images.fail ? 1 : p.images.error ? 2 : p.document && p.document.ready === "False" ? 3 : p.images.warn ? 4 : 5);
  const items = [...list.items].sort((a, b) => order(a) - order(b));
  put(page.main, heading("Policies"), items.length === 0
    ? (list.documents
      ? empty("No policy is loaded", "Name folders with policies in ", h("code", {}, "policies.folders"), ", or apply one to the cluster: ", h("code", {}, "kubectl apply -f policy.yaml"), ". ", h("code", {}, "quaymaster verify --policy policy.yaml IMAGE"), " tries one before.")
      : empty("No policy was evaluated yet", "A policy appears here once it matched a first object. ", h("code", {}, "kubectl get clusterpolicies,imagevalidatingpolicies"), " lists those of the cluster."))
    : [h("p", { class: "lead" }, summary(items), " Results are those for images now, and of the last seven days."),
      h("table", { class: "rows" }, h("caption", { class: "hidden" }, "Policies"),
        h("thead", {}, h("tr", {}, ["Policy", "Mode", "Ready", "Matches now", "Results over time", "Last error"].map((word) => h("th", { scope: "col" }, word)))),
        h("tbody", {}, items.map((p) => row(p, list.documents))))]);
}

function summary(items) {
  const modes = items.map((p) => (p.document || {}).mode).filter(Boolean);
  const some = [["enforce", "enforced"], ["warn", "warning"], ["audit", "audited"], ["scan", "for scans"], ["change", "changing objects"], ["json", "for documents"]].map(([mode, word]) => [modes.filter((m) => m === mode).length, word]).filter(([n]) => n > 0);
  return plural(items.length, "policy", "policies") + (some.length ? ": " + some.map(([n, word]) => count(n) + " " + word).join(", ") : "") + ".";
}

const row = (p, documents) => h("tr", { "data-policy": p.id },
  h("td", { "data-label": "Policy", class: "main-cell" },
    h("a", { href: policyPath(p.id), class: "name", title: p.id }, breakable(middle(p.name, 90))),
    h("div", { class: "under muted" }, p.kind || "", p.namespace && " in " + p.namespace),
    p.document && p.document.source && h("div", { class: "under muted" }, breakable(middle(p.document.source, 90)))),
  h("td", { "data-label": "Mode" }, mode(p)),
  h("td", { "data-label": "Ready" }, ready(p, documents)),
  h("td", { "data-label": "Matches" }, matches(p)),
  h("td", { "data-label": "Results" }, over(p), results(sum(p))),
  h("td", { "data-label": "Last error" }, lastError(p)));

const MODES = { enforce: ["denied", "Enforce", "a failure denies"], warn: ["warned", "Warn", "a failure is shown to the user"], audit: ["warned", "Audit", "a failure is reported"], scan: ["unchecked", "Scan", "only scans evaluate it"], change: ["unchecked", "Changes", "it changes or creates objects"], json: ["unchecked", "JSON", "it is about documents that are no objects: quaymaster verify --payload"] };

// mode is the effect of a failure.
export function mode(p) {
  const d = p.document;
  if (!d || !d.mode) return h("span", { class: "muted" }, d && d.state === "left-alone" ? "left alone" : "unknown");
  const [, word, about] = MODES[d.mode] || ["", d.mode, ""];
  return [h("span", { class: "mode mode-" + d.mode, title: about }, word), d.auditedBy && h("div", { class: "under muted" }, "by ", breakable(middle(d.auditedBy, 60))), d.failOpen && h("div", { class: "under muted" }, "fails open")];
}

// ready is the policy's condition.
export function ready(p, documents) {
  const d = p.document;
  if (!d) return h("span", { class: "muted" }, documents ? "no longer loaded" : "unknown");
  if (d.state === "left-alone") return [badge("unchecked", "Left alone"), h("div", { class: "under muted" }, prose(start(d.message || "", 120)))];
  if (d.ready === "True") return [badge("allowed", "Ready"), d.message && d.message !== "it is active" && h("div", { class: "under muted" }, prose(start(d.message, 120)))];
  return [badge(d.ready === "False" ? "denied" : "error", d.ready === "False" ? "Not ready" : "Unknown"), h("div", { class: "under muted" }, d.reason && [h("code", { class: "code" }, d.reason), " "], prose(start(d.message || "", 160)))];
}

function matches(p) {
  const now = total(p.images);
  if (now === 0) return h("span", { class: "muted" }, total(p.admission) + total(p.scan) > 0 ? "no image" : "nothing yet");
  return [share(p.images), h("a", { href: address("/images", { policy: p.id }) }, plural(now, "image")), results(p.images, (word) => word === "fail" || word === "error" ? address("/images", { policy: p.id, failed: "true" }) : "")];
}

// sum is that of the results over time.
export const sum = (p) => (p.moments || []).reduce((all, m) => Object.fromEntries(Object.keys(WORDS).map((word) => [word, all[word] + m[word]])), { pass: 0, fail: 0, warn: 0, error: 0, skip: 0 });

const GRAIN = 6 * 3600 * 1000, SLOTS = 28;

// over draws the results of each six hours, from the first one on.
export function over(p, wide = 168, high = 34) {
  const moments = p.moments || [];
  if (moments.length === 0) return null;
  const now = Math.floor(Date.now() / GRAIN) * GRAIN, first = new Date(moments[0].start).getTime();
  const slots = Math.max(1, Math.min(SLOTS, Math.round((now - first) / GRAIN) + 1));
  const most = Math.max(1, ...moments.map(total)), step = Math.min(18, wide / slots);
  const svg = s("svg", { class: "over", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": "Results since " + at(moments[0].start) },
    s("title", {}, "Since " + at(moments[0].start) + ", six hours a bar, at most " + count(most)), s("line", { class: "axis", x1: 0, x2: wide, y1: high - 0.5, y2: high - 0.5 }));
  for (const m of moments) {
    const n = Math.round((new Date(m.start).getTime() - first) / GRAIN);
    let below = 1;
    for (const word of ["pass", "skip", "warn", "error", "fail"]) {
      if (!m[word]) continue;
      const tall = Math.max(2, (m[word] / most) * (high - 2));
      svg.append(s("rect", { class: "fill-" + RESULTS[word], x: n * step, y: Math.max(0, high - below - tall), width: Math.max(1.5, step - 1.5), height: tall }));
      below += tall;
    }
  }
  return svg;
}

// lastError is why the policy could not be evaluated last, or does not compile.
export function lastError(p) {
  if (p.document && p.document.state === "broken") return h("span", { class: "why" }, prose(start(p.document.message || "it does not compile", 160)));
  const e = p.lastError;
  if (!e && !known(p.lastFail)) return h("span", { class: "muted" }, "none");
  return [e && h("div", {}, time(e.time), h("div", { class: "why" }, e.code && [h("code", { class: "code" }, e.code), " "], prose(start(e.message || "", 140)))),
    !e && h("span", { class: "muted" }, "none"), known(p.lastFail) && h("div", { class: "under muted" }, "failed ", time(p.lastFail))];
}

// results names the results that occur.
export function results(r, to = () => "") {
  const some = Object.keys(WORDS).filter((word) => r[word] > 0);
  if (some.length === 0) return h("span", { class: "muted" }, "none");
  return h("ul", { class: "results" }, some.map((word) => {
    const inner = [h("i", { class: "dot fill-" + RESULTS[word] }), WORDS[word], " ", h("span", { class: "num" }, count(r[word]))];
    return h("li", {}, to(word) ? h("a", { href: to(word) }, inner) : inner);
  }));
}

// share draws how many images pass.
function share(r) {
  const all = total(r);
  const bar = s("svg", { class: "share", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const word of Object.keys(WORDS)) {
    const wide = (r[word] / all) * 100;
    if (wide) bar.append(s("rect", { class: "fill-" + RESULTS[word], x, y: 0, width: Math.max(1, wide - 0.6), height: 6 }));
    x += wide;
  }
  return bar;
}

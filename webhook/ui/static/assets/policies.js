// The results of each policy.

import { h, put, s } from "./dom.js";
import { get } from "./api.js";
import { count, middle, plural } from "./format.js";
import { RESULTS, address, badge, empty, heading, time } from "./parts.js";

const WORDS = { pass: "Pass", fail: "Fail", warn: "Warn", error: "Error", skip: "Skip" };

export async function policies(page) {
  const list = await get("policies", {}, page.signal);
  page.ready();
  page.about(list.about);
  const order = (p) => (p.images.fail ? 0 : p.images.error ? 1 : p.images.warn ? 2 : 3);
  const items = [...list.items].sort((a, b) => order(a) - order(b));
  put(page.main, heading("Policies"), items.length === 0
    ? empty("No policy was evaluated yet", "A policy appears here once it matched a first object. The command quaymaster policies lists the active ones, as their status does.")
    : [h("p", { class: "lead" }, "The results of each policy for the images in use, and those of its rules since this replica started."),
      h("table", { class: "rows" }, h("caption", { class: "hidden" }, "Policies"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Policy"), h("th", { scope: "col" }, "Images now"), ["At admission", "In scans"].map((word) => h("th", { scope: "col" }, word)), h("th", { scope: "col" }, "Failed last"))),
        h("tbody", {}, items.map(row)))]);
}

const row = (p) => h("tr", {},
  h("td", { "data-label": "Policy", class: "main-cell" },
    h("a", { href: address("/images", { policy: p.id }), class: "name", title: p.id }, middle(p.name, 60)),
    h("div", { class: "under muted" }, p.kind, p.namespace && " in " + p.namespace),
    h("details", {}, h("summary", {}, plural(p.rules.length, "rule")), h("ul", { class: "plain rules" }, p.rules.map((r) => h("li", {}, h("span", {}, middle(r.name, 70)), results(r.results)))))),
  h("td", { "data-label": "Images now" }, share(p.images), results(p.images, (word) => word === "fail" || word === "error" ? address("/images", { policy: p.id, failed: "true" }) : "")),
  h("td", { "data-label": "At admission" }, results(p.admission)),
  h("td", { "data-label": "In scans" }, results(p.scan)),
  h("td", { "data-label": "Failed last", class: "nowrap" }, time(p.lastFail)));

// results names the results that occur.
function results(r, to = () => "") {
  const some = Object.keys(WORDS).filter((word) => r[word] > 0);
  if (some.length === 0) return h("span", { class: "muted" }, "none");
  return h("ul", { class: "results" }, some.map((word) => {
    const inner = [h("i", { class: "dot fill-" + RESULTS[word] }), WORDS[word], " ", h("span", { class: "num" }, count(r[word]))];
    return h("li", {}, to(word) ? h("a", { href: to(word) }, inner) : inner);
  }));
}

// share draws how many images pass.
function share(r) {
  const all = Object.keys(WORDS).reduce((n, word) => n + r[word], 0);
  if (all === 0) return null;
  const bar = s("svg", { class: "share", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
  let x = 0;
  for (const word of Object.keys(WORDS)) {
    const wide = (r[word] / all) * 100;
    if (wide) bar.append(s("rect", { class: "fill-" + RESULTS[word], x, y: 0, width: Math.max(1, wide - 0.6), height: 6 }));
    x += wide;
  }
  return bar;
}

// The latest decisions.

import { h, put, say } from "./dom.js";
import { get } from "./api.js";
import { middle, plural, start } from "./format.js";
import { address, badge, breakable, chips, empty, heading, pager, prose, time } from "./parts.js";

const LIMIT = 50;

export async function decisions(page) {
  const now = Object.fromEntries(["q", "verdict", "namespace"].map((f) => [f, page.parameters[f] || ""]));
  const offset = Math.max(0, Number.parseInt(page.parameters.offset || "0", 10) || 0);
  const to = (changes) => address("/decisions", { ...now, ...changes });
  const [list, facets] = await Promise.all([get("decisions", { ...now, offset, limit: LIMIT }, page.signal), get("facets", {}, page.signal)]);
  page.ready();
  page.about(list.about);
  const filtered = now.q || now.verdict || now.namespace;
  const results = h("div", { id: "results" }, chips(list.verdicts, now.verdict, (verdict) => to({ verdict })),
    list.items.length ? [table(list.items), pager(list.total, offset, LIMIT, (offset) => to({ offset }))]
      : filtered ? empty("No decision matches", h("a", { href: "/decisions" }, "Clear the filters"), ", or read the decision log: only the latest are kept here (", h("code", {}, "quaymaster log show DIR"), ").")
        : empty("No decision yet", "Decisions appear here from the API server's first request on. ", list.about.restores ? "" : "History starts now: no decision log is kept from which earlier decisions are restored."));
  const old = document.getElementById("results");
  if (old && document.getElementById("filters")) old.replaceWith(results);
  else put(page.main, heading("Decisions"), filters(page, facets), results);
  const form = document.getElementById("filters");
  for (const name of ["q", "namespace"]) if (document.activeElement !== form.elements[name]) form.elements[name].value = now[name];
  form.querySelector(".clear").hidden = !filtered;
  say(plural(list.total, "decision") + " found");
}

function filters(page, facets) {
  const go = () => {
    const form = document.getElementById("filters");
    const kept = Object.fromEntries(new URLSearchParams(location.search));
    page.navigate(address("/decisions", { verdict: kept.verdict, q: form.elements.q.value.trim(), namespace: form.elements.namespace.value }), true);
  };
  let waiting = 0;
  return h("form", { id: "filters", class: "filters", role: "search", "aria-label": "Decisions", onsubmit: (event) => { event.preventDefault(); go(); } },
    h("label", { class: "grow" }, h("span", {}, "Search"), h("input", { name: "q", type: "search", placeholder: "Object, image, user, reason or request UID", autocomplete: "off", spellcheck: "false", oninput: () => { clearTimeout(waiting); waiting = setTimeout(go, 180); } })),
    h("label", {}, h("span", {}, "Namespace"), h("select", { name: "namespace", onchange: go }, h("option", { value: "" }, "Any namespace"), facets.namespaces.map((v) => h("option", { value: v }, v)))),
    h("a", { href: "/decisions", class: "clear", hidden: true }, "Clear"));
}

const table = (items) => h("table", { class: "rows" }, h("caption", { class: "hidden" }, "Decisions, the latest first"),
  h("thead", {}, h("tr", {}, ["Verdict", "Object", "Images", "User", "When"].map((word) => h("th", { scope: "col" }, word)))),
  h("tbody", {}, items.map(row)));

const row = (d) => h("tr", {},
  h("td", { "data-label": "Verdict" }, badge(d.verdict), d.allowed && (d.verdict === "denied" || d.verdict === "error") && h("div", { class: "under muted" }, d.shadow ? "in shadow" : "admitted")),
  h("td", { "data-label": "Object", class: "main-cell" },
    h("a", { href: "/decisions/" + encodeURIComponent(d.id), class: "decision" }, h("span", { class: "muted" }, d.resource.kind || "Object", " "), h("span", { class: "name" }, breakable(middle((d.resource.namespace ? d.resource.namespace + "/" : "") + (d.resource.name || "without a name"), 90)))),
    (d.message || d.undecided) && h("div", { class: "why" }, d.code && [h("code", { class: "code" }, d.code), " "], d.container && ["container ", breakable(middle(d.container, 60)), ": "], prose(start(d.message || "Not decided: " + d.undecided, 260)))),
  h("td", { "data-label": "Images" }, (d.images || []).length === 0 ? h("span", { class: "muted" }, "none") : h("ul", { class: "plain" },
    d.images.slice(0, 3).map((i) => h("li", {}, h("a", { href: "/images/" + encodeURIComponent(i.id), title: i.written }, prose(middle(i.written, 90))))),
    d.images.length + (d.imagesLeftOut || 0) > 3 && h("li", { class: "muted" }, "and " + (d.images.length + (d.imagesLeftOut || 0) - 3) + " more"))),
  h("td", { "data-label": "User" }, h("span", {}, breakable(middle(d.user || "unknown", 80))), h("div", { class: "under muted" }, [d.operation, d.endpoint].filter(Boolean).join(" at "))),
  h("td", { "data-label": "When", class: "nowrap" }, time(d.time), h("div", { class: "under muted num" }, "in " + (d.durationMilliseconds || 0).toFixed(1) + " ms")));

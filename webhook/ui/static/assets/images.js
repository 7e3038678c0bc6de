// The images, with filters that live in the address.

import { h, put, say } from "./dom.js";
import { get } from "./api.js";
import { count, middle, plural } from "./format.js";
import { address, badge, breakable, causeOf, chips, digest, empty, heading, pager, time } from "./parts.js";
import { imageName, refuses } from "./overview.js";

const LIMIT = 50;
const FILTERS = ["q", "verdict", "state", "namespace", "signer", "key", "policy", "failed", "digest", "sort", "reverse"];

export async function images(page) {
  const now = Object.fromEntries(FILTERS.map((f) => [f, page.parameters[f] || ""]));
  const offset = Math.max(0, Number.parseInt(page.parameters.offset || "0", 10) || 0);
  const to = (changes) => address("/images", { ...now, ...changes });
  const [list, facets] = await Promise.all([get("images", { ...now, sort: now.sort || "state", offset, limit: LIMIT }, page.signal), get("facets", {}, page.signal)]);
  page.ready();
  page.about(list.about);
  const filtered = FILTERS.some((f) => f !== "sort" && f !== "reverse" && now[f]);
  const results = h("div", { id: "results" },
    states(list.states, now.state, (state) => to({ state })),
    chips(list.verdicts, now.verdict, (verdict) => to({ verdict })),
    list.items.length ? [tables(list, now, to), pager(list.total, offset, LIMIT, (offset) => to({ offset }))]
      : filtered ? empty("No image matches", h("a", { href: "/images" }, "Clear the filters"), " to see all of them.")
        : empty("No image yet", "Images appear here from the API server's first request, or the first scan, on. ", h("code", {}, "quaymaster verify IMAGE"), " verifies one from a terminal, and is not shown here."));
  const old = document.getElementById("results");
  if (old && document.getElementById("filters")) {
    old.replaceWith(results); // the field in use stays
    tell(now, filtered);
  } else {
    put(page.main, heading("Images"), filters(page, facets), results);
    tell(now, filtered);
  }
  say(plural(list.total, "image") + " found");
}

// tell copies the filters of the address into the fields, except the one in use.
function tell(now, filtered) {
  const form = document.getElementById("filters");
  for (const name of ["q", "namespace", "signer", "policy"]) {
    const field = form.elements[name];
    if (document.activeElement === field) continue;
    if (field.tagName === "SELECT" && now[name] && ![...field.options].some((o) => o.value === now[name])) field.append(h("option", { value: now[name] }, now[name]));
    field.value = now[name];
  }
  form.elements.failed.checked = now.failed === "true";
  form.querySelector(".clear").hidden = !filtered;
}

function filters(page, facets) {
  const go = () => {
    const kept = Object.fromEntries(new URLSearchParams(location.search));
    const form = document.getElementById("filters");
    for (const name of ["q", "namespace", "signer", "policy"]) kept[name] = form.elements[name].value.trim();
    kept.failed = form.elements.failed.checked && kept.policy ? "true" : "";
    kept.offset = "";
    page.navigate(address("/images", kept), true);
  };
  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(go, 180); };
  const select = (name, label, all, values, shown = (v) => v) => h("label", {}, h("span", {}, label),
    h("select", { name, onchange: go }, h("option", { value: "" }, all), values.map((v) => h("option", { value: v }, middle(shown(v), 60)))));
  return h("form", { id: "filters", class: "filters", role: "search", "aria-label": "Images", onsubmit: (event) => { event.preventDefault(); go(); } },
    h("label", { class: "grow" }, h("span", {}, "Search"), h("input", { name: "q", type: "search", placeholder: "Name, digest, signer or workload", autocomplete: "off", spellcheck: "false", oninput: soon })),
    select("namespace", "Namespace", "Any namespace", facets.namespaces),
    h("label", {}, h("span", {}, "Signer"), h("input", { name: "signer", type: "search", list: "signers", placeholder: "Identity or key", autocomplete: "off", spellcheck: "false", oninput: soon }),
      h("datalist", { id: "signers" }, facets.signers.map((v) => h("option", { value: v })))),
    select("policy", "Policy", "Any policy", facets.policies),
    h("label", { class: "check" }, h("input", { name: "failed", type: "checkbox", onchange: go }), h("span", {}, "only what fails it")),
    h("a", { href: "/images", class: "clear", hidden: true }, "Clear"));
}

const STATES = { running: ["Running", "workloads run them"], refused: ["Kept out", "objects with them were refused, and no workload runs them"], other: ["Asked about alone", "no object with them is known"] };

const stateOf = (image) => image.workloads > 0 ? "running" : image.refused > 0 ? "refused" : "other";

// states chooses between running images and refused ones.
function states(counts, chosen, to) {
  const chip = (value, label, n) => h("a", { class: "chip", href: to(value), "data-state": value || "all", "aria-current": chosen === value ? "true" : undefined }, label, h("span", { class: "num" }, count(n)));
  return h("nav", { class: "chips", "aria-label": "By state" }, chip("", "All images", counts.running + counts.refused + counts.other),
    Object.keys(STATES).filter((state) => counts[state] > 0 || state === chosen || state === "running").map((state) => chip(state, STATES[state][0], counts[state])));
}

// tables has one table for each state, unless the order is another.
function tables(list, now, to) {
  if (now.sort && now.sort !== "state") return table(list.items, now, to);
  return Object.keys(STATES).map((state) => {
    const items = list.items.filter((image) => stateOf(image) === state);
    return items.length > 0 && h("section", { class: "group", "data-state": state, "aria-label": STATES[state][0] },
      h("h2", {}, STATES[state][0], " ", h("span", { class: "num muted" }, count(list.states[state])), h("small", {}, " " + STATES[state][1])), table(items, now, to));
  });
}

const COLUMNS = [["Verdict", "attention"], ["Image", "reference"], ["Signed by", "signer"], ["Where", "pods"], ["Seen", "seen"]];

function table(items, now, to) {
  const sort = now.sort || "state", reverse = now.reverse === "true";
  return h("table", { class: "rows" }, h("caption", { class: "hidden" }, "Images in use"),
    h("thead", {}, h("tr", {}, COLUMNS.map(([word, by]) => h("th", { scope: "col", "aria-sort": by === sort ? (reverse ? "descending" : "ascending") : undefined },
      h("a", { href: to({ sort: by, reverse: by === sort && !reverse ? "true" : "" }), "data-sort": by }, word, h("span", { class: "arrow", "aria-hidden": "true" }, by === sort ? (reverse ? "↑" : "↓") : "")))))),
    h("tbody", {}, items.map(row)));
}

const row = (image) => h("tr", {},
  h("td", { "data-label": "Verdict" }, badge(image.verdict)),
  h("td", { "data-label": "Image", class: "main-cell" }, h("a", { href: "/images/" + encodeURIComponent(image.id), class: "image", title: image.reference }, imageName(image.reference)), h("div", { class: "under" }, digest(image.digest))),
  h("td", { "data-label": "Signed by", class: "signer" }, signer(image)),
  h("td", { "data-label": "Where" }, where(image)),
  h("td", { "data-label": "Seen", class: "nowrap" }, time(image.lastSeen)));

function signer(image) {
  if (!image.signers || image.signers.length === 0) return h("span", { class: "muted" }, image.verdict === "unchecked" ? "not required" : "not verified");
  const first = image.signers[0];
  const name = first.subject || "key " + first.keyFingerprint.slice(0, 16);
  return [h("a", { href: address("/images", { signer: first.subject || first.keyFingerprint }), title: "Everything signed by " + first.name, class: first.subject ? "" : "mono" }, breakable(middle(name.replace(/^https:\/\//, ""), 110))),
    image.signers.length > 1 && h("span", { class: "muted" }, " and " + (image.signers.length - 1) + " more")];
}

function where(image) {
  if (image.workloads === 0) {
    if (!image.refused) return h("span", { class: "muted" }, "not running");
    return [h("span", {}, "kept out of ", plural(image.refused, "workload")), image.cause && !refuses(image) && h("div", { class: "under cause" }, "because of ", causeOf(image.cause))];
  }
  const more = image.namespaceCount - (image.namespaces || []).length;
  return [h("span", {}, breakable(middle((image.namespaces || ["no namespace"]).slice(0, 2).join(", "), 60)), image.namespaceCount > 2 && h("span", { class: "muted" }, " and " + count(more + Math.max(0, (image.namespaces || []).length - 2)) + " more")),
    h("div", { class: "under muted num" }, plural(image.workloads, "workload"), ", ", plural(image.pods, "pod"), image.refused > 0 && [", and refused in ", plural(image.refused, "other")])];
}

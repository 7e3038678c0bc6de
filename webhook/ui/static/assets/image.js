// One image, and the chain of evidence that leads to its verdict.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { at, middle, plural, short } from "./format.js";
import { badge, copyable, digest, heading, time } from "./parts.js";
import { imageName } from "./overview.js";
import { chain, words } from "./chain.js";

export async function image(page) {
  const it = await get("images/" + encodeURIComponent(decodeURIComponent(page.id)), {}, page.signal);
  page.ready();
  page.about(it.about);
  page.title(middle(it.reference, 80));
  const record = it.record || null;
  put(page.main, 
    h("p", { class: "crumbs" }, h("a", { href: "/images" }, "Images"), h("span", { "aria-hidden": "true" }, " / ")),
    h("div", { class: "heading" }, h("h1", { tabindex: "-1", class: "image", title: it.reference }, imageName(it.reference)), badge(it.verdict)),
    h("div", { class: "facts" },
      fact("Digest", digest(it.digest, 24)),
      fact("Runs in", it.workloads ? `${plural(it.workloads, "workload")}, ${plural(it.pods, "pod")}` : it.refused ? "nothing; it was denied" : "no known object"),
      fact("Decided", time(it.decidedAt), " by ", it.process === "background scan" ? "a scan" : it.endpoint || "admission"),
      fact("First seen", time(it.firstSeen))),
    it.message && h("p", { class: "verdict-line v-" + it.verdict }, h("code", { class: "code" }, it.code), " ", it.message),
    record ? [evidence(record, it), judgements(record)] : h("p", { class: "notice" }, "The evidence of this image is too large to be kept here; the decision log has it."),
    places(it), it.references.length > 1 && names(it), raw(it, record));
}

const fact = (name, ...values) => h("div", {}, h("span", { class: "muted" }, name), h("span", {}, values));

function evidence(record, it) {
  return h("section", { class: "card", "aria-labelledby": "chain-title" },
    h("h2", { id: "chain-title" }, "Chain of evidence"),
    h("p", { class: "muted" }, "From the name in the manifest to this verdict, verified ", h("time", { datetime: it.decidedAt }, at(it.decidedAt)), "."),
    chain(record, it), words(record, it));
}

function judgements(record) {
  if (record.decisions.length === 0) {
    return h("section", { class: "card", "aria-labelledby": "judged" }, h("h2", { id: "judged" }, "Policies"), h("p", { class: "muted" }, "No policy matches this image, so nothing was verified."));
  }
  return h("section", { class: "card", "aria-labelledby": "judged" }, h("h2", { id: "judged" }, "Results of policies"),
    h("table", { class: "rows inner-table" }, h("caption", { class: "hidden" }, "Results of policies for this image"),
      h("thead", {}, h("tr", {}, ["Result", "Policy", "Rule", "Why"].map((word) => h("th", { scope: "col" }, word)))),
      h("tbody", {}, record.decisions.map((d) => h("tr", {},
        h("td", { "data-label": "Result" }, result(d)),
        h("td", { "data-label": "Policy" }, h("a", { href: "/images?policy=" + encodeURIComponent([d.policy.kind, d.policy.namespace, d.policy.name].filter(Boolean).join("/")), title: "Images that it speaks of" }, middle(d.policy.name, 50)), h("div", { class: "under muted" }, d.policy.kind, d.policy.namespace && " in " + d.policy.namespace)),
        h("td", { "data-label": "Rule" }, middle(d.rule || "", 60), d.entry && h("div", { class: "under muted" }, middle(d.entry, 60))),
        h("td", { "data-label": "Why", class: "reasons" }, d.reasons && d.reasons.length ? d.reasons.map(reason) : h("span", { class: "muted" }, d.proofs && d.proofs.length ? plural(d.proofs.length, "proof") + " met it" : "nothing is held against it")))))));
}

function reason(r) {
  return h("div", { class: "reason" }, h("p", {}, h("code", { class: "code" }, r.code), " ", r.message),
    (r.expected || r.found) && h("dl", {}, r.expected && [h("dt", {}, "expected"), h("dd", {}, r.expected)], r.found && [h("dt", {}, "found"), h("dd", {}, r.found)]),
    r.hint && h("p", { class: "muted" }, r.hint));
}

export function result(d) {
  const kind = { pass: "allowed", fail: "denied", indeterminate: "error", skipped: "unchecked" }[d.result] || "unchecked";
  const shown = d.effect === "warn" ? "warned" : kind;
  const b = badge(shown);
  b.lastChild.textContent = { pass: "Pass", fail: "Fail", indeterminate: "Indeterminate", skipped: "Skipped" }[d.result] || d.result;
  b.title = d.effect === "warn" ? "it does not deny" : "";
  return b;
}

function places(it) {
  return h("section", { class: "card", "aria-labelledby": "where" }, h("h2", { id: "where" }, "Where it runs"),
    it.uses.length === 0 ? h("p", { class: "muted" }, "No known object has it: the request was about the image alone.")
      : h("table", { class: "rows inner-table" }, h("caption", { class: "hidden" }, "Workloads"),
        h("thead", {}, h("tr", {}, ["Verdict", "Workload", "Namespace", "Containers", "Pods", "Seen"].map((word) => h("th", { scope: "col", class: word === "Pods" ? "right" : "" }, word)))),
        h("tbody", {}, it.uses.map((u) => h("tr", {},
          h("td", { "data-label": "Verdict" }, badge(u.verdict)),
          h("td", { "data-label": "Workload" }, h("span", { class: "muted" }, u.kind, " "), h("span", { class: "name" }, middle(u.name, 60))),
          h("td", { "data-label": "Namespace" }, u.namespace ? h("a", { href: "/images?namespace=" + encodeURIComponent(u.namespace) }, middle(u.namespace, 40)) : h("span", { class: "muted" }, "none")),
          h("td", { "data-label": "Containers" }, middle((u.containers || []).join(", "), 60)),
          h("td", { "data-label": "Pods", class: "right num" }, u.running ? u.pods.toLocaleString("en") : h("span", { class: "muted" }, "kept out")),
          h("td", { "data-label": "Seen", class: "nowrap" }, time(u.lastSeen)))))),
    it.usesLeftOut > 0 && h("p", { class: "muted" }, "And more, above the number that is kept."));
}

const names = (it) => h("section", { class: "card", "aria-labelledby": "names" }, h("h2", { id: "names" }, "Named as"),
  h("ul", { class: "plain" }, it.references.map((r) => h("li", {}, copyable(r, middle(r, 110), "reference")))));

function raw(it, record) {
  return h("details", { class: "card raw" }, h("summary", {}, "The record, as JSON"),
    h("p", { class: "muted" }, "Policies ", it.policySetHash ? copyable(it.policySetHash, short(it.policySetHash), "hash") : "none", ", trust ", it.trustGeneration ? copyable(it.trustGeneration, short(it.trustGeneration), "generation") : "none", ". ", h("a", { href: "/api/v1/images/" + encodeURIComponent(it.id) }, "This page's data")),
    h("pre", { tabindex: "0", "aria-label": "The record" }, JSON.stringify(record, null, 2)));
}


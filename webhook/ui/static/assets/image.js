// One image, and the chain of evidence that leads to its verdict.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { at, middle, plural, short } from "./format.js";
import { badge, breakable, causeOf, copyable, digest, heading, policyPath, prose, time } from "./parts.js";
import { imageName, refuses } from "./overview.js";
import { chain, words } from "./chain.js";

export async function image(page) {
  const it = await get("images/" + encodeURIComponent(decodeURIComponent(page.id)), {}, page.signal);
  page.ready();
  page.about(it.about);
  page.title(middle(it.reference, 80));
  const record = it.record || null;
  put(page.main,
    h("p", { class: "crumbs" }, h("a", { href: "/images" }, "All images")),
    h("div", { class: "heading" }, h("h1", { tabindex: "-1", class: "image", title: it.reference }, imageName(it.reference)), badge(it.verdict)),
    h("div", { class: "facts" },
      fact("Digest", digest(it.digest)),
      fact("Runs in", it.workloads ? `${plural(it.workloads, "workload")}, ${plural(it.pods, "pod")}` : it.refused ? ["nothing; it was kept out of ", plural(it.refused, "workload")] : "no known object"),
      fact("Decided", time(it.decidedAt), " by ", it.process === "background scan" ? "a scan" : it.endpoint || "admission"),
      fact("First seen", time(it.firstSeen))),
    it.message && h("p", { class: "verdict-line v-" + it.verdict }, it.code && [h("code", { class: "code" }, it.code), " "], prose(it.message)),
    it.cause && !refuses(it) && h("p", { class: "verdict-line v-denied", id: "cause" }, "The last object with it was refused because of ", causeOf(it.cause), it.cause.message && [": ", prose(it.cause.message)], "."),
    record ? [evidence(record, it), judgements(record)] : h("p", { class: "notice" }, "The evidence of this image is too large to be kept here; the decision log has it."),
    places(it), it.references.length > 1 && names(it), raw(it, record));
}

const fact = (name, ...values) => h("div", {}, h("span", { class: "muted" }, name), h("span", {}, values));

export function evidence(record, it, name = "") {
  return h("section", { class: "card", "aria-label": "Chain of evidence" + (name && ", " + name) },
    h("h2", {}, "Chain of evidence", name && [" of ", breakable(name)]),
    h("p", { class: "muted" }, "From the name in the manifest to this verdict, decided ", h("time", { datetime: it.decidedAt }, at(it.decidedAt)), "."),
    chain(record, it), words(record, it));
}

export function judgements(record) {
  if ((record.decisions || []).length === 0) {
    return h("section", { class: "card" }, h("h2", {}, "Policies"), h("p", { class: "muted" }, "No policy matches this image, so nothing was verified."));
  }
  return h("section", { class: "card" }, h("h2", {}, "Results of policies"),
    h("table", { class: "rows inner-table" }, h("caption", { class: "hidden" }, "Results of policies for this image"),
      h("thead", {}, h("tr", {}, ["Result", "Policy", "Rule", "Why"].map((word) => h("th", { scope: "col" }, word)))),
      h("tbody", {}, record.decisions.map((d) => h("tr", {},
        h("td", { "data-label": "Result" }, result(d)),
        h("td", { "data-label": "Policy" }, h("a", { href: policyPath([d.policy.kind, d.policy.namespace, d.policy.name].filter(Boolean).join("/")) }, breakable(middle(d.policy.name, 80))), h("div", { class: "under muted" }, d.policy.kind, d.policy.namespace && " in " + d.policy.namespace)),
        h("td", { "data-label": "Rule" }, breakable(middle(d.rule || "", 80)), d.entry && h("div", { class: "under muted" }, breakable(middle(d.entry, 80)))),
        h("td", { "data-label": "Why", class: "reasons" }, d.reasons && d.reasons.length ? d.reasons.map(reason) : h("span", { class: "muted" }, d.proofs && d.proofs.length ? plural(d.proofs.length, "verified claim") : d.result === "skipped" ? "the policy exempts the image" : "no reason against it")))))));
}

export function reason(r) {
  return h("div", { class: "reason" }, h("p", {}, r.code && [h("code", { class: "code" }, r.code), " "], prose(r.message || "")),
    (r.expected || r.found) && h("dl", {}, r.expected && [h("dt", {}, "expected"), h("dd", {}, prose(r.expected))], r.found && [h("dt", {}, "found"), h("dd", {}, prose(r.found))]),
    r.hint && h("p", { class: "muted" }, prose(r.hint)));
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
  return h("section", { class: "card", "aria-labelledby": "where" }, h("h2", { id: "where" }, "Where it runs, and where it was refused"),
    it.uses.length === 0 ? h("p", { class: "muted" }, "No known object has it: the request was for the image alone.")
      : h("table", { class: "rows inner-table" }, h("caption", { class: "hidden" }, "Workloads"),
        h("thead", {}, h("tr", {}, ["Verdict", "Workload", "Namespace", "Containers", "Pods", "Seen"].map((word) => h("th", { scope: "col", class: word === "Pods" ? "right" : "" }, word)))),
        h("tbody", {}, it.uses.map((u) => h("tr", {},
          h("td", { "data-label": "Verdict" }, badge(u.verdict)),
          h("td", { "data-label": "Workload" }, h("span", { class: "muted" }, u.kind, " "), h("span", { class: "name" }, breakable(middle(u.name, 80)))),
          h("td", { "data-label": "Namespace" }, u.namespace ? h("a", { href: "/images?namespace=" + encodeURIComponent(u.namespace) }, breakable(middle(u.namespace, 63))) : h("span", { class: "muted" }, "none")),
          h("td", { "data-label": "Containers" }, breakable(middle((u.containers || []).join(", "), 120))),
          h("td", { "data-label": "Pods", class: "right num" }, u.running ? u.pods.toLocaleString("en") : h("span", { class: "muted" }, "kept out"), !u.running && u.cause && h("div", { class: "under cause" }, "because of ", causeOf(u.cause))),
          h("td", { "data-label": "Seen", class: "nowrap" }, time(u.lastSeen)))))),
    it.usesLeftOut > 0 && h("p", { class: "muted" }, "And more, above the number that is kept."));
}

const names = (it) => h("section", { class: "card", "aria-labelledby": "names" }, h("h2", { id: "names" }, "Named as"),
  h("ul", { class: "plain" }, it.references.map((r) => h("li", {}, copyable(r, prose(r), "reference")))));

export function raw(it, record) {
  return h("details", { class: "card raw" }, h("summary", {}, "The record, as JSON"),
    h("p", { class: "muted" }, "Policies ", it.policySetHash ? copyable(it.policySetHash, short(it.policySetHash), "hash") : "none", ", trust ", it.trustGeneration ? copyable(it.trustGeneration, short(it.trustGeneration), "generation") : "none", ". ", h("a", { href: it.address || "/api/v1/images/" + encodeURIComponent(it.id) }, "This page's data")),
    it.resultsLeftOut > 0 && h("p", { class: "muted" }, "Failures and errors are kept first. Results left out: ", it.resultsLeftOut.toLocaleString("en"), "."),
    h("pre", { tabindex: "0", "aria-label": "The record" }, JSON.stringify(record, null, 2)));
}


// One decision: the object, what was the reason, and the evidence of its images.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { at, middle } from "./format.js";
import { badge, breakable, copyable, policyPath, prose, time } from "./parts.js";
import { evidence, judgements, reason } from "./image.js";

const MOST = 4; // the images whose chain is open

export async function decision(page) {
  const it = await get("decisions/" + encodeURIComponent(decodeURIComponent(page.id)), {}, page.signal);
  page.ready();
  page.about(it.about);
  const name = (it.resource.namespace ? it.resource.namespace + "/" : "") + (it.resource.name || "without a name");
  page.title(middle(name, 80));
  const record = it.record || null;
  put(page.main,
    h("p", { class: "crumbs" }, h("a", { href: "/decisions" }, "All decisions")),
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, h("span", { class: "before muted" }, it.resource.kind || "Object", " "), breakable(middle(name, 120))), badge(it.verdict)),
    h("div", { class: "facts" },
      fact("Response", it.allowed ? it.shadow ? "admitted, in shadow" : "admitted" : "refused"),
      fact("Decided", time(it.time), ", ", h("span", { class: "num" }, at(it.time))),
      fact("User", breakable(middle(it.user || "unknown", 120))),
      fact("Request", [it.operation, it.endpoint].filter(Boolean).join(" at ") || "unknown"),
      it.uid && fact("Request UID", copyable(it.uid, breakable(it.uid), "UID"))),
    why(it), command(it), images(it, record), record && rules(record),
    record && h("details", { class: "card raw" }, h("summary", {}, "The record, as JSON"), h("p", { class: "muted" }, h("a", { href: "/api/v1/decisions/" + encodeURIComponent(it.id) }, "This page's data")), h("pre", { tabindex: "0", "aria-label": "The record" }, JSON.stringify(record, null, 2))));
}

const fact = (name, ...values) => h("div", {}, h("span", { class: "muted" }, name), h("span", {}, values));

const row = (name, ...values) => [h("dt", {}, name), h("dd", {}, values)];

// why is the container or the rule that was the reason.
function why(it) {
  if (it.undecided) return card("Reason", h("p", {}, "Not decided: ", prose(it.undecided)));
  if (!it.message && !it.container && !it.policy) {
    return card("Reason", h("p", { class: "calm" }, it.verdict === "unchecked" ? "No policy matches it, so nothing was verified." : "Every policy that matches it passes."));
  }
  return card(it.verdict === "warned" ? "Warning" : "Reason", h("dl", { class: "pairs", id: "reason" },
    it.container && row("Container", h("strong", {}, breakable(middle(it.container, 120)))),
    it.image && row("Image", copyable(it.image, prose(it.image), "image")),
    it.policy && row("Policy", h("a", { href: policyPath(it.policy) }, breakable(middle(it.policy, 160))), it.rule && [", rule ", breakable(middle(it.rule, 120))]),
    row("Reason", it.code && [h("code", { class: "code" }, it.code), " "], prose(it.message || "none is given")),
    it.expected && row("Expected", prose(it.expected)),
    it.found && row("Found", prose(it.found)),
    it.fix && row("Fix", prose(it.fix))));
}

const card = (title, ...content) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title), content);

// command explains the image that is the reason, else the first one.
function command(it) {
  const list = it.images || [];
  let n = list.findIndex((image) => image.verdict === "denied" || image.verdict === "error");
  if (n < 0) n = 0;
  const text = (it.commands || [])[n];
  if (!text) return null;
  return card("Explain", h("p", { class: "muted" }, "This command shows each step of the verdict on ", list[n].container ? ["container ", breakable(list[n].container)] : "the image", it.container || !it.policy ? "." : " alone; the reason above is a rule for the whole object, which takes the manifest instead (-f FILE)."),
    h("div", { class: "command" }, copyable(text, prose(text), "command")));
}

function images(it, record) {
  const list = it.images || [];
  if (list.length === 0) return null;
  if (!record || !record.images) return h("p", { class: "notice" }, "The evidence of this decision is not kept here any more, or is too large; the decision log has it.");
  const order = ["denied", "error", "warned", "unchecked", "allowed"];
  const sorted = list.map((image, n) => [image, record.images[n]]).filter(([, r]) => r).sort(([a], [b]) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const shown = sorted.map(([image, r], n) => {
    const name = image.container ? "container " + image.container : image.written;
    const content = () => [evidence(r, { digest: r.digest, decidedAt: it.time }, name), judgements(r)];
    const title = [badge(image.verdict), " ", h("strong", {}, breakable(middle(name, 100))), " ", h("a", { href: "/images/" + encodeURIComponent(image.id) }, prose(middle(image.written, 160)))];
    if (n < MOST) return h("section", { class: "decided", "data-container": image.container || "" }, h("p", { class: "decided-title" }, title), content());
    const more = h("details", { class: "decided" }, h("summary", {}, title));
    more.addEventListener("toggle", () => { if (more.open && more.children.length === 1) more.append(...content()); });
    return more;
  });
  return [shown, it.imagesLeftOut > 0 && h("p", { class: "muted" }, "And more images, above the number that is kept here: ", it.imagesLeftOut.toLocaleString("en"), ". The decision log has them.")];
}

// rules are those about the object.
function rules(record) {
  const list = (record.rules || []).filter((r) => r.kind || r.error);
  if (list.length === 0) return null;
  const kind = (r) => r.error || r.result === "indeterminate" ? "error" : r.result === "fail" ? (r.action === "Enforce" ? "denied" : "warned") : r.result === "pass" ? "allowed" : "unchecked";
  const word = (r) => r.error ? "Error" : r.skipped ? "Skipped" : { pass: "Pass", fail: "Fail", indeterminate: "Indeterminate" }[r.result] || "None";
  return card("Rules about the object", h("table", { class: "rows inner-table" }, h("caption", { class: "hidden" }, "Rules about the object"),
    h("thead", {}, h("tr", {}, ["Result", "Policy", "Rule", "Reason"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, list.map((r) => h("tr", {},
      h("td", { "data-label": "Result" }, badge(kind(r), word(r))),
      h("td", { "data-label": "Policy" }, h("a", { href: policyPath([r.policy.kind, r.policy.namespace, r.policy.name].filter(Boolean).join("/")) }, breakable(middle(r.policy.name, 80)))),
      h("td", { "data-label": "Rule" }, breakable(middle(r.rule || "", 80))),
      h("td", { "data-label": "Reason", class: "reasons" }, r.error ? prose(r.error) : r.skipped ? prose(r.skipped) : (r.reasons || []).length ? r.reasons.map(reason) : h("span", { class: "muted" }, "none")))))));
}

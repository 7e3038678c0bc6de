// One policy: its state, its results, and its definition.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { at, known, middle, plural } from "./format.js";
import { address, breakable, copyable, prose, time } from "./parts.js";
import { lastError, mode, over, ready, results, sum } from "./policies.js";

export async function policy(page) {
  const it = await get("policy", { id: page.parameters.id }, page.signal);
  page.ready();
  page.about(it.about);
  const p = it.policy;
  page.title(middle(p.name, 80));
  put(page.main,
    h("p", { class: "crumbs" }, h("a", { href: "/policies" }, "All policies")),
    h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, breakable(middle(p.name, 160)))),
    h("div", { class: "facts" },
      fact("Kind", p.kind || "unknown", p.namespace && " in " + p.namespace),
      fact("Mode", mode(p)), fact("Ready", ready(p, it.documents)),
      p.document && p.document.source && fact("Read from", breakable(p.document.source)),
      p.hash && fact("Last evaluated version", copyable(p.hash, p.hash.slice(0, 12), "hash"))),
    p.document && p.document.title && h("p", { class: "lead" }, prose(p.document.title)),
    h("section", { class: "card", "aria-label": "Results" }, h("h2", {}, "Results"),
      h("dl", { class: "pairs" },
        row("For images now", h("a", { href: address("/images", { policy: p.id }) }, "the images that it matches"), results(p.images)),
        row("At admission", results(p.admission)), row("In scans", results(p.scan)),
        row("Last seven days", over(p, 336, 60), results(sum(p))),
        row("Last failure", time(p.lastFail), known(p.lastFail) && [", ", at(p.lastFail)]),
        row("Last error", lastError(p))),
      p.rules.length > 0 && [h("h3", {}, plural(p.rules.length, "rule")), h("ul", { class: "plain rules" }, p.rules.map((r) => h("li", {}, h("span", {}, breakable(middle(r.name, 120))), results(r.results))))]),
    h("section", { class: "card raw", "aria-label": "Definition" }, h("h2", {}, "Definition"),
      it.definition ? h("pre", { tabindex: "0", "aria-label": "The definition" }, it.definition) : h("p", { class: "muted" }, p.document && p.document.state === "derived" ? "A setting of the gateway makes it; it has no document." : "No document of it is loaded.")));
}

const fact = (name, ...values) => h("div", {}, h("span", { class: "muted" }, name), h("div", {}, values));

const row = (name, ...values) => [h("dt", {}, name), h("dd", {}, values)];

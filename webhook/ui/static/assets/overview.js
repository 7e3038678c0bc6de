// The overview.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { bare, count, middle, named, plural } from "./format.js";
import { VERDICTS, address, badge, empty, heading, icon, time } from "./parts.js";
import { chart, proportions } from "./chart.js";

const SPANS = [["1h", "Hour"], ["24h", "Day"], ["7d", "Week"]];

export async function overview(page) {
  const span = page.parameters.span || "24h";
  const it = await get("overview", { span }, page.signal);
  page.ready();
  page.about(it.about);
  const images = Object.keys(VERDICTS).reduce((n, v) => n + it.images[v], 0);
  const asked = it.moments.some((m) => Object.keys(VERDICTS).some((v) => m[v]));
  if (images === 0 && !asked) {
    put(page.main, heading("Overview"), empty("No decision yet", "Images appear here from the API server's first request, or the first scan, on."));
    return;
  }
  put(page.main, heading("Overview"),
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-labelledby": "in-use" },
        h("h2", { id: "in-use" }, "Images in use"),
        h("p", { class: "big" }, h("strong", { class: "num" }, count(images)), " ", images === 1 ? "image" : "images", h("span", { class: "muted" }, " in ", plural(it.workloads, "workload"), ", under ", plural(it.policies, "policy", "policies"))),
        proportions(it.images),
        h("ul", { class: "tally" }, Object.keys(VERDICTS).map((v) => h("li", {},
          h("a", { href: address("/images", { verdict: v }), class: it.images[v] ? "" : "none" }, icon(v), h("span", {}, VERDICTS[v].word, h("small", {}, VERDICTS[v].about)), h("span", { class: "num" }, count(it.images[v]))))))),
      h("section", { class: "card wide", "aria-labelledby": "over-time" },
        h("div", { class: "row" }, h("h2", { id: "over-time" }, "Decisions over time"),
          h("nav", { class: "segments", "aria-label": "How far back" }, SPANS.map(([value, word]) => h("a", { href: address("/", { span: value === "24h" ? "" : value }), "aria-current": value === span ? "true" : undefined }, word)))),
        chart(it.moments, span, it.grainSeconds))),
    h("section", { class: "card", "aria-labelledby": "attention" },
      h("div", { class: "row" }, h("h2", { id: "attention" }, "Needs attention"), it.attention.length > 0 && h("a", { href: "/images" }, "All images")),
      it.attention.length === 0
        ? h("p", { class: "calm" }, icon("allowed"), "None: every image that policies match is allowed.")
        : h("ul", { class: "list" }, it.attention.map(attention))),
    h("div", { class: "columns even" },
      h("section", { class: "card", "aria-labelledby": "latest" },
        h("div", { class: "row" }, h("h2", { id: "latest" }, "Latest denials"), h("a", { href: "/decisions" }, "All decisions")),
        it.latest.length === 0 ? h("p", { class: "calm" }, icon("allowed"), "No request was denied.") : h("ul", { class: "list" }, it.latest.map(refused))),
      h("section", { class: "card", "aria-labelledby": "failing" },
        h("div", { class: "row" }, h("h2", { id: "failing" }, "Policies that fail"), h("a", { href: "/policies" }, "All policies")),
        it.failing.length === 0 ? h("p", { class: "calm" }, icon("allowed"), "None.") : h("ul", { class: "list" }, it.failing.map(failing)))));
}

export function imageName(reference) {
  const parts = named(reference);
  return [h("span", { class: "muted before" }, middle(parts.before, 44)), h("span", { class: "name" }, middle(parts.name, 40)), h("span", { class: "tag" }, middle(parts.tag, 26))];
}

const attention = (image) => h("li", {}, badge(image.verdict),
  h("div", { class: "grow" }, h("a", { href: "/images/" + encodeURIComponent(image.id), class: "image", title: image.reference }, imageName(image.reference)), h("p", { class: "why" }, middle(image.message || "", 180))),
  h("div", { class: "aside muted" }, image.workloads > 0 ? "runs in " + plural(image.workloads, "workload") : image.refused > 0 ? "kept out" : "not running", h("br"), time(image.lastSeen)));

const refused = (d) => h("li", {}, badge(d.verdict),
  h("div", { class: "grow" }, h("a", { href: address("/decisions", { q: d.uid || d.resource.name, verdict: d.verdict }) }, d.resource.kind || "Object", " ", h("span", { class: "name" }, middle((d.resource.namespace ? d.resource.namespace + "/" : "") + (d.resource.name || "without a name"), 60))), h("p", { class: "why" }, middle(bare(d.message || d.undecided || ""), 140))),
  h("div", { class: "aside muted" }, time(d.time)));

const failing = (p) => h("li", {}, badge(p.images.error > p.images.fail ? "error" : p.images.fail ? "denied" : "warned", p.images.error > p.images.fail ? "Errors" : "Fails"),
  h("div", { class: "grow" }, h("a", { href: address("/images", { policy: p.id, failed: "true" }), class: "name", title: p.id }, middle(p.name, 60)), h("p", { class: "why" }, p.kind, p.namespace && " in " + p.namespace)),
  h("div", { class: "aside muted num" }, plural(p.images.fail + p.images.error, "image"), h("br"), time(p.lastFail)));

// The overview.

import { h, put } from "./dom.js";
import { get } from "./api.js";
import { at, count, middle, named, plural, start } from "./format.js";
import { VERDICTS, address, badge, breakable, causeOf, empty, heading, icon, policyPath, prose, time } from "./parts.js";
import { chart, proportions } from "./chart.js";

const SPANS = [["1h", "Hour"], ["24h", "Day"], ["7d", "Week"]];

export async function overview(page) {
  let span = page.parameters.span || "24h";
  let it = await get("overview", { span }, page.signal);
  if (!page.parameters.span && brief(it)) { // a day would be one bar
    span = "1h";
    it = await get("overview", { span }, page.signal);
  }
  page.ready();
  page.about(it.about);
  const images = total(it.images);
  const asked = it.moments.some((m) => Object.keys(VERDICTS).some((v) => m[v]));
  if (images === 0 && !asked) {
    put(page.main, heading("Overview"), empty("No decision yet", "Images appear here from the API server's first request, or the first scan, on. ", it.about.restores ? "" : startsNow(it.about)));
    return;
  }
  const running = total(it.apart.running), refused = total(it.apart.refused), other = total(it.apart.other);
  const attention = it.attention.filter((image) => image.workloads > 0);
  put(page.main, heading("Overview"),
    fresh(it.about) && h("p", { class: "notice", id: "history" }, startsNow(it.about)),
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-labelledby": "in-use" },
        h("h2", { id: "in-use" }, "Running images"),
        h("p", { class: "big", id: "running-count" }, h("strong", { class: "num" }, count(running)), " ", running === 1 ? "image" : "images", h("span", { class: "muted" }, " in ", plural(it.apart.runningWorkloads, "workload"), ", under ", plural(it.policies, "policy", "policies"))),
        proportions(it.apart.running), tally(it.apart.running, "running"),
        h("p", { class: "apart", id: "refused-count" }, h("a", { href: address("/images", { state: "refused" }) }, "Kept out: ", h("strong", { class: "num" }, count(refused)), " ", refused === 1 ? "image" : "images"), h("span", { class: "muted" }, refused ? " in " + plural(it.apart.refusedWorkloads, "refused workload") + "; no workload runs them" : "; no object was refused")),
        other > 0 && h("p", { class: "apart" }, h("a", { href: address("/images", { state: "other" }) }, "Asked about alone: ", h("strong", { class: "num" }, count(other)), " ", other === 1 ? "image" : "images"))),
      h("section", { class: "card wide", "aria-labelledby": "over-time" },
        h("div", { class: "row" }, h("h2", { id: "over-time" }, "Decisions over time"),
          h("nav", { class: "segments", "aria-label": "How far back" }, SPANS.map(([value, word]) => h("a", { href: address("/", { span: value === "24h" ? "" : value }), "aria-current": value === span ? "true" : undefined }, word)))),
        chart(it.moments, span, it.grainSeconds))),
    h("div", { class: "columns even" },
      h("section", { class: "card", "aria-labelledby": "attention" },
        h("div", { class: "row" }, h("h2", { id: "attention" }, "Needs attention"), h("a", { href: address("/images", { state: "running" }) }, "Running images")),
        attention.length === 0
          ? h("p", { class: "calm" }, icon("allowed"), "None: every running image that policies match is allowed.")
          : h("ul", { class: "list" }, attention.map(urgent))),
      h("section", { class: "card", "aria-labelledby": "kept-out" },
        h("div", { class: "row" }, h("h2", { id: "kept-out" }, "Kept out"), h("a", { href: address("/images", { state: "refused" }) }, "Refused images")),
        it.refused.length === 0 ? h("p", { class: "calm" }, icon("allowed"), "None.") : h("ul", { class: "list" }, it.refused.map(keptOut)))),
    h("div", { class: "columns even" },
      h("section", { class: "card", "aria-labelledby": "latest" },
        h("div", { class: "row" }, h("h2", { id: "latest" }, "Latest denials"), h("a", { href: "/decisions" }, "All decisions")),
        it.latest.length === 0 ? h("p", { class: "calm" }, icon("allowed"), "No request was denied.") : h("ul", { class: "list" }, it.latest.map(refusal))),
      h("section", { class: "card", "aria-labelledby": "failing" },
        h("div", { class: "row" }, h("h2", { id: "failing" }, "Policies that fail"), h("a", { href: "/policies" }, "All policies")),
        it.failing.length === 0 ? h("p", { class: "calm" }, icon("allowed"), "None.") : h("ul", { class: "list" }, it.failing.map(failing)))));
}

const total = (tally) => Object.keys(VERDICTS).reduce((n, v) => n + tally[v], 0);

// brief reports whether all decisions are in the last hour.
const brief = (it) => {
  const first = it.moments.findIndex((m) => total(m) > 0);
  return first >= 0 && first >= it.moments.length - 4;
};

// fresh reports whether a restart began a new history in the last day.
const fresh = (about) => !about.restores && Date.now() - new Date(about.since).getTime() < 24 * 3600 * 1000;

// startsNow says that a restart began a new history.
const startsNow = (about) => ["History starts now: it begins with this process, at ", h("time", { datetime: about.since }, at(about.since)), ", since no decision log is kept from which earlier decisions are restored (", h("code", {}, "decisionLog.folder"), ")."];

const tally = (counts, state) => h("ul", { class: "tally" }, Object.keys(VERDICTS).map((v) => h("li", {},
  h("a", { href: address("/images", { state, verdict: v }), class: counts[v] ? "" : "none", "data-verdict": v }, icon(v), h("span", {}, VERDICTS[v].word, h("small", {}, VERDICTS[v].about)), h("span", { class: "num" }, count(counts[v]))))));

export function imageName(reference) {
  const parts = named(reference);
  return [h("span", { class: "muted before" }, breakable(middle(parts.before, 60))), h("span", { class: "name" }, breakable(middle(parts.name, 80))), h("span", { class: "tag" }, breakable(middle(parts.tag, 60)))];
}

const imageLink = (image) => h("a", { href: "/images/" + encodeURIComponent(image.id), class: "image", title: image.reference }, imageName(image.reference));

const urgent = (image) => h("li", {}, badge(image.verdict),
  h("div", { class: "grow" }, imageLink(image), h("p", { class: "why" }, prose(start(image.message || "", 180)))),
  h("div", { class: "aside muted" }, h("span", {}, "in " + plural(image.workloads, "workload")), time(image.lastSeen)));

// keptOut names what refused the object: the image, or another container of it.
const keptOut = (image) => h("li", {}, badge(image.verdict),
  h("div", { class: "grow" }, imageLink(image), h("p", { class: "why" },
    image.cause && !refuses(image) ? ["its object was refused because of ", causeOf(image.cause)] : prose(start(image.message || "", 180)))),
  h("div", { class: "aside muted" }, h("span", {}, plural(image.refused, "refusal")), time(image.lastSeen)));

// refuses reports whether an image is a reason to refuse an object by itself.
export const refuses = (image) => image.verdict === "denied" || image.verdict === "error";

const refusal = (d) => h("li", {}, badge(d.verdict),
  h("div", { class: "grow" }, h("a", { href: "/decisions/" + encodeURIComponent(d.id) }, d.resource.kind || "Object", " ", h("span", { class: "name" }, breakable(middle((d.resource.namespace ? d.resource.namespace + "/" : "") + (d.resource.name || "without a name"), 80)))), h("p", { class: "why" }, prose(start(d.message || d.undecided || "", 140)))),
  h("div", { class: "aside muted" }, time(d.time)));

const failing = (p) => h("li", {}, badge(p.images.error > p.images.fail ? "error" : p.images.fail ? "denied" : "warned", p.images.error > p.images.fail ? "Errors" : "Fails"),
  h("div", { class: "grow" }, h("a", { href: policyPath(p.id), class: "name", title: p.id }, breakable(middle(p.name, 80))), h("p", { class: "why" }, p.kind, p.namespace && " in " + p.namespace)),
  h("div", { class: "aside muted num" }, h("a", { href: address("/images", { policy: p.id, failed: "true" }) }, plural(p.images.fail + p.images.error, "image")), time(p.lastFail)));

// Decisions over time, as stacked bars.

import { h, put, s } from "./dom.js";
import { clockOf, count, dayOf } from "./format.js";
import { VERDICTS } from "./parts.js";

const ORDER = ["allowed", "unchecked", "warned", "error", "denied"]; // from the bottom

const sum = (m) => ORDER.reduce((all, v) => all + m[v], 0);

// ticks are whole numbers from 0 to at least n, at equal distances: five at most.
export function ticks(n) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n))) - 1);
  const step = [1, 2, 5, 10, 20, 50].map((f) => f * power).find((c) => n / c <= 4);
  return Array.from({ length: Math.max(1, Math.ceil(n / step)) + 1 }, (_, k) => k * step);
}

// sinceFirst leaves out what is before the first decision.
export function sinceFirst(moments) {
  const first = moments.findIndex((m) => sum(m) > 0);
  return first < 0 ? moments : moments.slice(first);
}

// chart draws the moments, as wide as there is room.
export function chart(all, span, grain) {
  const moments = sinceFirst(all);
  const figure = h("figure", { class: "chart" });
  const tip = h("div", { class: "tip", hidden: true });
  const draw = () => put(figure, picture(moments, span, grain, Math.max(280, figure.clientWidth), tip), tip, legend(moments), table(moments, span));
  let width = 0;
  new ResizeObserver(() => {
    if (figure.clientWidth && figure.clientWidth !== width) { width = figure.clientWidth; draw(); }
  }).observe(figure);
  return figure;
}

const label = (time, span) => span === "7d" ? dayOf(time) + ", " + clockOf(time) : clockOf(time);

function picture(moments, span, grain, width, tip) {
  const height = 300, left = 40, bottom = 26, top = 10;
  const marks = ticks(Math.max(1, ...moments.map(sum)));
  const high = marks.at(-1);
  const y = (n) => top + (height - top - bottom) * (1 - n / high);
  const step = Math.min(48, (width - left) / moments.length);
  const bar = Math.max(1.5, step - (step > 6 ? 2 : 0.5));
  const total = moments.reduce((all, m) => all + sum(m), 0);
  const denied = moments.reduce((all, m) => all + m.denied + m.error, 0);
  const svg = s("svg", { "data-moments": moments.length, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${count(total)} decisions in the last ${span}, of which ${count(denied)} admitted nothing. The table below has the numbers.` });
  for (const n of marks) {
    svg.append(s("line", { class: n ? "grid" : "axis", x1: left, x2: width, y1: y(n), y2: y(n) }),
      s("text", { x: left - 8, y: y(n) + 4, "text-anchor": "end" }, count(n)));
  }
  const every = Math.max(1, Math.ceil((span === "7d" ? 92 : 64) / step));
  moments.forEach((m, n) => {
    const x = left + n * step;
    if (n % every === 0 && x + (span === "7d" ? 46 : 24) < width) svg.append(s("text", { x: x + bar / 2, y: height - 6, "text-anchor": n === 0 ? "start" : "middle" }, span === "7d" ? dayOf(m.start) : clockOf(m.start)));
    let below = 0;
    for (const verdict of ORDER) {
      if (!m[verdict]) continue;
      const tall = Math.max(1.5, y(below) - y(below + m[verdict]));
      svg.append(s("rect", { class: "fill-" + verdict, x, y: y(below) - tall, width: bar, height: tall, rx: Math.min(1.5, bar / 3) }));
      below += m[verdict];
    }
  });
  const mark = s("rect", { class: "mark", y: top, width: step, height: height - top - bottom, visibility: "hidden" });
  svg.append(mark);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const n = Math.floor(((event.clientX - box.left) * (width / box.width) - left) / step);
    if (n < 0 || n >= moments.length) return hide();
    mark.setAttribute("x", left + n * step - (step - bar) / 2);
    mark.setAttribute("visibility", "visible");
    tell(tip, moments[n], span);
    tip.hidden = false;
    const at = left + n * step;
    tip.style.left = Math.min(Math.max(0, at + 14), width - tip.offsetWidth) + "px";
    if (at + 14 + tip.offsetWidth > width) tip.style.left = Math.max(0, at - tip.offsetWidth - 10) + "px";
  });
  const hide = () => { tip.hidden = true; mark.setAttribute("visibility", "hidden"); };
  svg.addEventListener("pointerleave", hide);
  return svg;
}

function tell(tip, m, span) {
  put(tip, h("strong", {}, label(m.start, span)), sum(m) === 0 ? h("div", { class: "muted" }, "no request") :
    ORDER.filter((v) => m[v]).reverse().map((v) => h("div", {}, h("i", { class: "dot fill-" + v }), h("span", {}, VERDICTS[v].word), h("span", { class: "num" }, count(m[v])))));
}

function legend(moments) {
  const used = ORDER.filter((v) => moments.some((m) => m[v]));
  return h("figcaption", { class: "legend" }, moments.some((m) => sum(m) > 0) && h("span", { class: "muted" }, "From the first decision on, ", label(moments[0].start, "7d")), used.map((v) => h("span", {}, h("i", { class: "dot fill-" + v }), VERDICTS[v].word, " ", h("span", { class: "num muted" }, count(moments.reduce((all, m) => all + m[v], 0))))));
}

// table has the same numbers, for screen readers.
function table(moments, span) {
  const rows = moments.filter((m) => sum(m) > 0);
  return h("details", { class: "numbers" }, h("summary", {}, "The numbers as a table"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions over time" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"), ORDER.map((v) => h("th", { scope: "col", class: "right" }, VERDICTS[v].word)))),
      h("tbody", {}, rows.length ? rows.map((m) => h("tr", {}, h("th", { scope: "row" }, label(m.start, span)), ORDER.map((v) => h("td", { class: "right num" }, count(m[v]))))) : h("tr", {}, h("td", { colspan: "6" }, "No request."))))));
}

// proportions is one bar with the shares of the verdicts.
export function proportions(tally) {
  const all = Object.keys(VERDICTS).reduce((n, v) => n + tally[v], 0);
  const bar = s("svg", { class: "proportions", viewBox: "0 0 1000 12", preserveAspectRatio: "none", width: "100%", height: 12, "aria-hidden": "true" });
  let x = 0;
  for (const verdict of Object.keys(VERDICTS).reverse()) {
    const wide = all ? Math.max(tally[verdict] ? 6 : 0, (tally[verdict] / all) * 1000) : 0;
    if (wide) bar.append(s("rect", { class: "fill-" + verdict, x, y: 0, width: Math.max(1, wide - 3), height: 12 }));
    x += wide;
  }
  return bar;
}

// Decisions over time, as stacked bars.

import { h, put, s } from "./dom.js";
import { clockOf, count, dayOf } from "./format.js";
import { VERDICTS } from "./parts.js";

const ORDER = ["allowed", "unchecked", "warned", "error", "denied"]; // from the bottom

const sum = (m) => ORDER.reduce((all, v) => all + m[v], 0);

// nice is the least round number that is not below n, and has round halves.
function nice(n) {
  if (n <= 2) return 2;
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((f) => f * power).find((c) => c >= n);
}

// chart draws the moments, as wide as there is room.
export function chart(moments, span, grain) {
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
  const high = nice(Math.max(1, ...moments.map(sum)));
  const y = (n) => top + (height - top - bottom) * (1 - n / high);
  const step = (width - left) / moments.length;
  const bar = Math.max(1.5, step - (step > 6 ? 2 : 0.5));
  const total = moments.reduce((all, m) => all + sum(m), 0);
  const denied = moments.reduce((all, m) => all + m.denied + m.error, 0);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${count(total)} decisions in the last ${span}, of which ${count(denied)} admitted nothing. The table below has the numbers.` });
  for (const n of [0, high / 2, high]) {
    svg.append(s("line", { class: n ? "grid" : "axis", x1: left, x2: width, y1: y(n), y2: y(n) }),
      s("text", { x: left - 8, y: y(n) + 4, "text-anchor": "end" }, count(n)));
  }
  const every = Math.ceil(moments.length / Math.max(2, Math.floor((width - left) / (span === "7d" ? 92 : 76))));
  moments.forEach((m, n) => {
    const x = left + n * step;
    if (n % every === 0 && x + 30 < width) svg.append(s("text", { x: x + bar / 2, y: height - 6, "text-anchor": n === 0 ? "start" : "middle" }, span === "7d" ? dayOf(m.start) : clockOf(m.start)));
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
  put(tip, h("strong", {}, label(m.start, span)), sum(m) === 0 ? h("div", { class: "muted" }, "nothing was asked") :
    ORDER.filter((v) => m[v]).reverse().map((v) => h("div", {}, h("i", { class: "dot fill-" + v }), h("span", {}, VERDICTS[v].word), h("span", { class: "num" }, count(m[v])))));
}

function legend(moments) {
  const used = ORDER.filter((v) => moments.some((m) => m[v]));
  return h("figcaption", { class: "legend" }, used.map((v) => h("span", {}, h("i", { class: "dot fill-" + v }), VERDICTS[v].word, " ", h("span", { class: "num muted" }, count(moments.reduce((all, m) => all + m[v], 0))))));
}

// table has the same numbers, for screen readers.
function table(moments, span) {
  const rows = moments.filter((m) => sum(m) > 0);
  return h("details", { class: "numbers" }, h("summary", {}, "The numbers as a table"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions over time" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "From"), ORDER.map((v) => h("th", { scope: "col", class: "right" }, VERDICTS[v].word)))),
      h("tbody", {}, rows.length ? rows.map((m) => h("tr", {}, h("th", { scope: "row" }, label(m.start, span)), ORDER.map((v) => h("td", { class: "right num" }, count(m[v]))))) : h("tr", {}, h("td", { colspan: "6" }, "Nothing was asked."))))));
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

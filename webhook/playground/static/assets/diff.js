// The difference of two texts by lines: the longest common subsequence, within bounds.

import { h } from "./dom.js";

const MAX_CELLS = 1000000; // of the table; beyond, everything between equal ends counts as changed
const CONTEXT = 3;

// lines returns the lines of both texts in order, each with " ", "-" or "+".
export function lines(before, after) {
  const a = before === "" ? [] : before.replace(/\n$/, "").split("\n"), b = after.replace(/\n$/, "").split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (part) => part.map((text) => [" ", text]);
  return [...same(a.slice(0, head)), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...same(a.slice(a.length - tail))];
}

function middle(a, b) {
  if (a.length * b.length > MAX_CELLS) return [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push([" ", a[i]]); i++; j++; }
    else if (i < a.length && (j === b.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) out.push(["-", a[i++]]);
    else out.push(["+", b[j++]]);
  }
  return out;
}

// diff shows what changed between two texts, with some lines around each change.
export function diff(before, after) {
  const all = lines(before, after);
  const near = all.map((_, n) => all.slice(Math.max(0, n - CONTEXT), n + CONTEXT + 1).some(([sign]) => sign !== " "));
  const rows = [];
  let skipped = 0;
  const skip = () => {
    if (skipped) rows.push(h("span", { class: "line gap" }, "… " + skipped + (skipped === 1 ? " equal line" : " equal lines"), "\n"));
    skipped = 0;
  };
  const words = { "+": "added: ", "-": "removed: ", " ": "" };
  for (const [n, [sign, text]] of all.entries()) {
    if (!near[n]) { skipped++; continue; }
    skip();
    const kind = sign === "+" ? "add" : sign === "-" ? "remove" : "same";
    rows.push(h("span", { class: "line " + kind }, words[sign] && h("span", { class: "hidden" }, words[sign]), h("span", { class: "sign", "aria-hidden": "true" }, sign + " "), text, "\n"));
  }
  skip();
  return h("pre", { class: "diff", tabindex: "0" }, rows);
}

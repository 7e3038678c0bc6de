package browser

import "strings"

// brokenWords returns the words of the page that are on two lines, and lines that begin or end with a
// separator. A word is a part of a name between its joints.
const brokenWords = `(() => {
  const found = [], walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = node.parentElement;
    if (!inside.checkVisibility() || inside.closest("svg, pre, select, .hidden, caption, thead")) continue;
    for (const word of node.data.matchAll(/[\p{L}\p{N}…]{2,}/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push("broken: " + word[0]);
    }
    if (/^\s*[·|]\s*$/.test(node.data)) found.push("separator: " + inside.textContent);
  }
  for (const line of document.querySelectorAll("svg.chain text")) {
    if (/^[·,|]|[·|]$/.test(line.textContent.trim())) found.push("separator: " + line.textContent);
    if (/sha(256|512):$/.test(line.textContent)) found.push("digest: " + line.textContent);
    const box = line.closest("g.step")?.querySelector("rect");
    if (box && line.getBBox().x + line.getBBox().width > Number(box.getAttribute("width"))) found.push("cut: " + line.textContent);
  }
  for (const each of document.querySelectorAll("main .hex, main .code, main .num, main .badge")) {
    if (each.checkVisibility() && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== "visible") found.push("cut: " + each.textContent);
  }
  return found;
})()`

// whole fails if a word or a digest is broken or cut.
func (b *tab) whole(name string) {
	b.t.Helper()
	if found := eval[[]string](b, brokenWords); len(found) > 0 {
		b.t.Errorf("%s: %s", name, strings.Join(found[:min(len(found), 8)], "; "))
	}
}

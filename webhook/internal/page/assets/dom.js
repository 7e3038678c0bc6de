// Elements are made by name, attributes and children. Text is always a text node, so
// that untrusted text is never read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...there(children));
  return element;
}

const there = (children) => children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false);

// put gives an element these children in place of those that it has.
export const put = (element, ...children) => element.replaceChildren(...there(children));

export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// say announces a change of the page to screen readers.
export function say(text) {
  document.getElementById("live").textContent = text;
}

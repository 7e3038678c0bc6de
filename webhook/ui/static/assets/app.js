// The pages, by address.

import { h, put, say } from "./dom.js";
import { Failure } from "./api.js";
import { keep, signedIn } from "./token.js";
import "./colours.js";
import { at } from "./format.js";
import { breakable, failed, heading, loading } from "./parts.js";
import { overview } from "./overview.js";
import { images } from "./images.js";
import { image } from "./image.js";
import { decisions } from "./decisions.js";
import { decision } from "./decision.js";
import { policies } from "./policies.js";
import { policy } from "./policy.js";

const main = document.getElementById("main");
const REFRESH = 15000;

const routes = [
  [/^\/$/, overview, "Overview", "overview"],
  [/^\/images$/, images, "Images", "images"],
  [/^\/images\/([^/]+)$/, image, "Image", "images"],
  [/^\/decisions$/, decisions, "Decisions", "decisions"],
  [/^\/decisions\/([^/]+)$/, decision, "Decision", "decisions"],
  [/^\/policies$/, policies, "Policies", "policies"],
  [/^\/policy$/, policy, "Policy", "policies"],
];

let leave = new AbortController();
let shown = ""; // the path of the shown page

// open shows the page of the address. What moved only within a page keeps the focus.
async function open({ quiet = false } = {}) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const path = location.pathname;
  const route = routes.find(([pattern]) => pattern.test(path));
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    if (route && link.dataset.page === route[3]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!route) {
    put(main, heading("Page not found"), h("p", {}, h("a", { href: "/" }, "Go to the overview")));
    document.title = "Not found · Quaymaster";
    return;
  }
  const page = {
    main, signal, again: () => open(), navigate,
    parameters: Object.fromEntries(new URLSearchParams(location.search)),
    id: (path.match(route[0])[1] || ""),
    title(text) { document.title = text + " · Quaymaster"; },
    about,
  };
  const arrives = shown !== path;
  if (arrives) {
    page.title(route[2]);
    const bones = setTimeout(() => { if (!signal.aborted) put(main, heading(route[2]), loading()); }, 120);
    signal.addEventListener("abort", () => clearTimeout(bones));
    page.ready = () => clearTimeout(bones);
  } else page.ready = () => {};
  try {
    await route[1](page);
    stale(null);
  } catch (error) {
    if (error.name === "AbortError") return;
    page.ready();
    if (!(error instanceof Failure)) console.error(error);
    if (error.status === 401) signIn(error);
    else if (quiet && error.status === 0) { stale(error); return; }
    else put(main, heading(route[2]), failed(error, () => open()));
    shown = "";
    return;
  }
  if (arrives && shown !== "") {
    const title = main.querySelector("h1");
    if (title) title.focus({ preventScroll: true });
    scrollTo(0, 0);
    say(document.title.replace(" · Quaymaster", "") + " page");
  }
  shown = path;
}

// navigate goes to an address of the dashboard.
export function navigate(address, replace = false) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return open();
}

// about names the replica that responded.
function about(it) {
  const foot = document.getElementById("about");
  const words = ["Shown by replica ", h("strong", {}, breakable(it.replica)), ", with decisions since ", h("time", { datetime: it.since }, at(it.since)), it.restores ? "." : ": without a decision log, history starts with the process."];
  if (it.scanned) words.push(" Last result of a scan: " + at(it.scanned) + ".");
  if (it.alone) words.push(" ", h("strong", {}, "Only this replica's data: " + it.alone + "."));
  if (it.dropped) words.push(" " + it.dropped.toLocaleString("en") + " decisions came too fast and are not shown.");
  if (signedIn()) words.push(" ", h("button", { type: "button", class: "link", onclick: () => { keep(""); shown = ""; open(); } }, "Sign out"));
  put(foot, ...words);
}

// stale shows that the data is not current.
function stale(error) {
  const banner = document.getElementById("banner");
  if (!error) banner.replaceChildren();
  else if (!banner.hasChildNodes()) put(banner, h("p", { class: "inner" }, error.message + " The page shows earlier data."));
}

// signIn asks for a token.
function signIn(error) {
  document.title = "Sign in · Quaymaster";
  const wrong = signedIn();
  keep("");
  const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-help" });
  const form = h("form", { class: "card sign-in", onsubmit: (event) => { event.preventDefault(); keep(field.value.trim()); shown = ""; open(); } },
    h("label", { for: "token" }, "Bearer token"), field,
    h("p", { id: "token-help", class: "muted" }, "One of the gateway's token file, or of the cluster: kubectl create token NAME --audience quaymaster. It stays in this tab."),
    wrong && h("p", { role: "alert", class: "wrong" }, error.message),
    h("button", { type: "submit", class: "button primary" }, "Sign in"));
  put(main, heading("Sign in"), form);
  field.focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || link.target || to.pathname.startsWith("/api/")) return;
  if (to.hash && to.pathname === location.pathname) return;
  event.preventDefault();
  const same = to.pathname === location.pathname;
  navigate(to.pathname + to.search).then(() => { if (same) scrollTo(0, 0); });
});
addEventListener("popstate", () => open());

// The page is kept up to date, unless a field in it is being edited.
setInterval(() => {
  const busy = main.contains(document.activeElement) && document.activeElement.tagName !== "H1" && document.activeElement !== main;
  if (!document.hidden && shown && !busy && !main.querySelector("details[open]") && getSelection().isCollapsed) open({ quiet: true });
}, REFRESH);

open();

// The playground: editors, the link of their state, and evaluations.

import { h, put, say } from "./dom.js";
import { bearer, keep, signedIn } from "./token.js";
import { decode, encode, LinkError, NAMES } from "./state.js";
import { failure, results, summary } from "./results.js";

const of = (id) => document.getElementById(id);
const editors = Object.fromEntries(NAMES.map((name) => [name, of(name)]));
const shown = of("results"), choice = of("example"), button = of("evaluate");
const DELAY = 300; // ms without a key before the address changes

let examples = [];
let running = null; // the evaluation in progress
let written = ""; // the fragment that this page wrote

const documents = () => Object.fromEntries(NAMES.map((name) => [name, editors[name].value]));

// show puts documents into the editors, and removes the results of earlier ones.
function show(from) {
  for (const name of NAMES) {
    editors[name].value = from[name] || "";
    const details = editors[name].closest("details");
    if (details) details.open = editors[name].value !== "";
  }
  if (running) running.abort();
  put(shown, h("p", { class: "muted" }, "Press Evaluate to see the results."));
  shown.classList.remove("old");
}

const banner = (text) => put(of("banner"), text && h("p", { class: "inner" }, text));

// remember writes the state into the address, so that it survives a reload.
async function remember() {
  try {
    const fragment = await encode(documents());
    banner("");
    written = "#" + fragment;
    history.replaceState(null, "", written);
    return true;
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    banner("There is no link: " + error.message + ".");
    history.replaceState(null, "", location.pathname);
    return false;
  }
}

// open shows the state of the address; false without one.
async function open() {
  const fragment = location.hash.slice(1);
  if (fragment === "" || fragment === "main") return false;
  try {
    show(await decode(fragment));
    written = location.hash;
    banner("");
    say("The documents of the link are shown, and not evaluated yet.");
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    banner("The link cannot be read: " + error.message + ".");
    return false;
  }
  return true;
}

async function ask(path, options) {
  const response = await fetch(path, { credentials: "omit", redirect: "error", ...options, headers: { ...(options.headers || {}), ...bearer() } });
  let body = null;
  try { body = await response.json(); } catch { /* told below */ }
  if (response.ok && body !== null) return body;
  const error = new Error((body && body.message) || "The server answered with status " + response.status + ".");
  error.status = response.status;
  throw error;
}

async function evaluate() {
  if (running) running.abort();
  const mine = running = new AbortController();
  button.disabled = true;
  shown.setAttribute("aria-busy", "true");
  const asked = documents();
  try {
    const found = await ask("api/v1/evaluate", { method: "POST", body: JSON.stringify(asked), signal: mine.signal, headers: { "Content-Type": "application/json" } });
    put(shown, results(found));
    say(summary(found));
    if (shown.getBoundingClientRect().top > innerHeight) shown.scrollIntoView(); // below the editors, on a narrow screen
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) signIn(error, evaluate);
    else {
      const message = error.status ? error.message : "The server does not respond.";
      put(shown, failure(message));
      say(message);
    }
  } finally {
    if (running === mine) {
      running = null;
      button.disabled = false;
      shown.removeAttribute("aria-busy");
      shown.classList.toggle("old", NAMES.some((name) => editors[name].value !== asked[name]));
    }
  }
}

// signIn asks for a token, as the dashboard does.
function signIn(error, then) {
  const wrong = signedIn();
  keep("");
  const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  put(shown, h("form", { class: "card sign-in", onsubmit: (event) => { event.preventDefault(); keep(field.value.trim()); then(); } },
    h("label", { for: "token" }, "Bearer token"), field,
    h("p", { class: "muted" }, "The dashboard's. It stays in this tab."),
    wrong && h("p", { role: "alert", class: "wrong" }, error.message),
    h("button", { type: "submit", class: "button primary" }, "Sign in")));
  field.focus();
}

async function load() {
  try {
    const list = await ask("api/v1/examples", { method: "GET" });
    examples = list.items;
    put(choice, h("option", { value: "" }, "Choose one"), examples.map((e) => h("option", { value: e.id }, e.title)));
    return true;
  } catch (error) {
    if (error.status === 401) signIn(error, () => { put(shown); start(); });
    else put(shown, failure(error.status ? error.message : "The server does not respond."));
    return false;
  }
}

// start shows the state of the address, or the first example.
async function start() {
  const known = await open();
  if (!(await load()) || known || NAMES.some((name) => editors[name].value !== "")) return;
  choice.value = examples[0].id;
  show(examples[0]);
}

let later = 0;
for (const editor of Object.values(editors)) {
  for (const [name, value] of Object.entries({ spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", wrap: "off" })) editor.setAttribute(name, value);
  editor.addEventListener("input", () => {
    choice.value = "";
    if (shown.querySelector(".summary")) shown.classList.add("old");
    clearTimeout(later);
    later = setTimeout(remember, DELAY);
  });
}
choice.addEventListener("change", () => {
  const chosen = examples.find((e) => e.id === choice.value);
  if (!chosen) return;
  show(chosen);
  remember();
});
button.addEventListener("click", evaluate);
of("editors").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); evaluate(); }
});
of("copy").addEventListener("click", async () => {
  clearTimeout(later);
  if (!(await remember())) return;
  try {
    await navigator.clipboard.writeText(location.href);
    say("Link copied");
    of("copy").textContent = "Copied";
    setTimeout(() => { of("copy").textContent = "Copy link"; }, 1500);
  } catch {
    banner("The browser does not let the page copy. The link is in the address bar.");
  }
});
addEventListener("hashchange", () => { if (location.hash !== written) open(); });

start();

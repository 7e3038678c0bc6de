// The button that switches between light and dark colours.

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");

function tell() {
  const dark = (document.documentElement.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
  button.textContent = dark ? "Light" : "Dark";
  button.setAttribute("aria-label", "Switch to " + (dark ? "light" : "dark") + " colours");
  return dark;
}

button.addEventListener("click", () => {
  const next = tell() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("quaymaster-theme", next); } catch { /* then it holds until the page is left */ }
  tell();
});
systemDark.addEventListener("change", tell);
tell();

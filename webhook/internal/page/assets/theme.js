// Sets the colours before anything is drawn: those chosen here before, else those that the
// system prefers.
"use strict";
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("quaymaster-theme"); } catch (e) { /* storage may be refused */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

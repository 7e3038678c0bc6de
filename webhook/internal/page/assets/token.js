// The token of the tab, for all pages of this host.

const KEY = "quaymaster-token";

let held = "";
try { held = sessionStorage.getItem(KEY) || ""; } catch { /* storage may be refused */ }

// keep stores the token until the tab is closed; "" removes it.
export function keep(token) {
  held = token;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch { /* then it is kept until the page is left */ }
}

export const signedIn = () => held !== "";

// bearer is the header of a request with the token.
export const bearer = () => held ? { Authorization: "Bearer " + held } : {};

// Requests to this host's own API.

import { bearer } from "./token.js";

// Failure is a response without data; status is 0 where there was no response.
export class Failure extends Error {
  constructor(status, reason, message) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export async function get(path, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  const address = "/api/v1/" + path + (query.size ? "?" + query : "");
  let response;
  try {
    response = await fetch(address, {
      signal, credentials: "omit", redirect: "error",
      headers: bearer(),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, "gone", "The gateway does not respond. It may be restarting, or the connection to it was closed.");
  }
  let body = null;
  try { body = await response.json(); } catch { /* told below */ }
  if (signal && signal.aborted) throw new DOMException("left", "AbortError");
  if (!response.ok) throw new Failure(response.status, (body && body.reason) || "unknown", (body && body.message) || "The gateway responded with status " + response.status + ".");
  if (body === null) throw new Failure(response.status, "unreadable", "The gateway's response cannot be read.");
  return body;
}

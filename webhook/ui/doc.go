// Package ui answers: what does a person see of what was decided?
//
// A Handler serves the dashboard: embedded pages, and the JSON that they show, at
// /api/v1/ (docs/dashboard.md describes every field), from an inventory.Inventory. It
// is read only. Everything comes from the one host, under a Content-Security-Policy
// (Level 3, with Trusted Types) that lets the browser ask nobody else and run no text
// as a script.
//
// Of several replicas one leads, and scans; the others show what that one answers
// (Leader), and what they know themselves where it does not.
//
// What is shown tells of every namespace, so who may read is asked by bearer token
// (RFC 6750). The pages themselves hold nothing secret and are given to anybody. On
// loopback no token is asked for; a request must then name a loopback host, or a page
// elsewhere could read the dashboard through a name of its own that it points here.
package ui

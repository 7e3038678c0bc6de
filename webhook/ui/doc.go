// Package ui serves the dashboard: embedded pages and the JSON that they show.
//
// The API is below /api/v1/ and reads an inventory.Inventory; docs/dashboard.md describes every
// field. The dashboard is read only. All content comes from one host, under a
// Content-Security-Policy (Level 3, with Trusted Types) that blocks other origins and inline
// scripts.
//
// The replica that leads also scans. The other replicas show its responses (Leader), and fall back
// to their own inventory.
//
// The API covers every namespace, so it requires a bearer token (RFC 6750) and authorisation. The
// pages contain no secrets and are public. On loopback no token is required. Requests must then
// name a loopback host, which prevents DNS rebinding: a foreign page could otherwise read the
// dashboard through a domain that resolves to this host.
package ui

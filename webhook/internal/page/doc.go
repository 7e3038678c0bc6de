// Package page serves the pages of the gateway and of commands: embedded files, errors in JSON, and the headers
// that confine a page to its own host (Content Security Policy Level 3, with Trusted Types; HTTP, RFC 9110).
package page

// Package redirect chooses the mirror that serves a given digest.
//
// It asks targets in their order, within a share of the request's time, caches the answers
// for a while, and skips a registry that did not answer recently. It verifies nothing: the
// caller decides whether the digest is verified.
package redirect

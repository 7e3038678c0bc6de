// Package redirect answers: which mirror serves the very digest that was decided
// about?
//
// It asks targets in their order, within a share of the request's time, keeps for
// a while what was found, and leaves alone a registry that did not answer. It
// judges nothing: whether the digest was proved is the caller's to say.
package redirect

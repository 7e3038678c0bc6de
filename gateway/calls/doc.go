// Package calls makes the HTTP calls of policies: those of CEL expressions, of the contexts of
// Kyverno's rules, and of global context entries; to listed hosts only, without credentials, and
// with bounds.
package calls

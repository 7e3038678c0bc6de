// Package evaluation evaluates policies from files against objects from files.
//
// It compiles policies with their values, makes the requests that an API server would send, and
// evaluates them with package gate. `quaymaster test` and `quaymaster apply` share it. The
// results of rules have Kyverno's names (Kyverno 1.19, "kyverno apply"): pass, fail, warn, error
// and skip.
package evaluation

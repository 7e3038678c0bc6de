// Package bench answers: what do policies that are written in files say of objects
// that are, too?
//
// It compiles policies with what is given for them, makes the requests that an API
// server would have made, and asks package gate; `quaymaster test` and `quaymaster
// apply` share it. What it says of a rule has Kyverno's words for results (Kyverno
// 1.19, "kyverno apply"): pass, fail, warn, error and skip.
package bench

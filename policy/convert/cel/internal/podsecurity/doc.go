// Package podsecurity writes the Pod Security Standards of Kyverno rules (validate.podSecurity, Kyverno 1.19)
// as validations in CEL, one for each check.
//
// The standards are those of Kubernetes 1.37 ("Pod Security Standards"), as package policy/podsecurity
// evaluates them. An exclusion becomes a part of the expression.
package podsecurity

// Package celpolicy answers: what do all policies of policies.kyverno.io have in
// common?
//
// It reads what ImageValidatingPolicy, ValidatingPolicy and MutatingPolicy (v1, v1beta1
// and v1alpha1, Kyverno 1.19) write alike: heads, settings, match conditions, audit
// annotations, the pod controllers that follow from pods, and what is to be told of a
// document that does not compile. It gives expressions the variables of an admission
// request. Each dialect is a package of its own above it.
package celpolicy

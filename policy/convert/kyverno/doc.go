// Package kyverno answers: what do the verifyImages rules of a ClusterPolicy ask of
// images?
//
// It follows ClusterPolicy and Policy of kyverno.io/v1 and v2beta1. Rules of other
// kinds, and what is said in JMESPath, are refused: the gateway takes these policies
// as they are, too (package policy/kyverno).
package kyverno

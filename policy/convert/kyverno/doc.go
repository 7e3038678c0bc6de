// Package kyverno reads the verifyImages rules of ClusterPolicies.
//
// It follows ClusterPolicy and Policy of kyverno.io/v1 and v2beta1. Rules of other kinds,
// and JMESPath, are refused: the gateway also accepts these policies unconverted (package
// policy/dialect/kyverno).
package kyverno

// Package requirement writes what a rule of Kyverno (ClusterPolicy, 1.19) requires by conditions, loops and
// variables as expressions of a ValidatingPolicy (policies.kyverno.io/v1).
package requirement

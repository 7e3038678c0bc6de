// Package containers reads the pull policies of nodes.
//
// It follows containers-policy.json(5), and OpenShift's ImagePolicy and ClusterImagePolicy
// (config.openshift.io/v1), which become such a policy.json on the nodes. The most
// specific scope alone decides.
package containers

// Package containers answers: what does a node's policy for pulls ask of images?
//
// It follows containers-policy.json(5), and OpenShift's ImagePolicy and
// ClusterImagePolicy (config.openshift.io/v1), which become such a policy.json on the
// nodes. Of the scopes the most specific one alone decides.
package containers

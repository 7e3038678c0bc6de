// Package schemas makes the schemas of the kinds that Quaymaster evaluates: the structural schemas
// of their definitions (apiextensions.k8s.io/v1) in deploy/crds, and JSON schemas (draft-07) for
// editors in deploy/schemas.
//
// Those of Kyverno's and policy-controller's kinds follow from the definitions that the projects
// generate from their API types, at the versions that tools/definitions pins, so that the same
// documents are valid. They set no default, because the compilers of policies have their own, require
// no field, and keep unknown fields at every level, so that the gateway can refuse them with their path: an API
// server would drop them, and with them what a policy requires.
package schemas

// Package ratify reads the resources of Ratify.
//
// It follows Verifier and KeyManagementProvider of Ratify 1
// (config.ratify.deislabs.io/v1beta1) and Executor of Ratify 2
// (config.ratify.sh/v2alpha1). Plug-ins outside of Ratify are refused.
package ratify

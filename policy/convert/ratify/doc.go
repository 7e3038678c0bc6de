// Package ratify answers: what do Ratify's resources ask of images?
//
// It follows Verifier and KeyManagementProvider of Ratify 1
// (config.ratify.deislabs.io/v1beta1) and Executor of Ratify 2
// (config.ratify.sh/v2alpha1). What a plug-in outside of Ratify would be asked is
// refused.
package ratify

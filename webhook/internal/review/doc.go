// Package review implements what the endpoints for reviews of images share: reading a request
// within limits, calling the gate within a deadline, recording the result, and texts for people.
//
// The endpoints are webhook/admission (admission.k8s.io/v1), webhook/imagepolicy
// (imagepolicy.k8s.io/v1alpha1), webhook/externaldata (externaldata.gatekeeper.sh/v1beta1) and
// webhook/api. Each implements its own protocol; a request passes through this package as
//
//	Bodies.ReadJSON -> the endpoint's decoder -> Run -> the endpoint's response
//
// A panic, a timeout and a full queue are results with a Cause, never a missing response.
package review

// Package admission implements the admission webhooks: it converts an AdmissionReview to a request
// to the gate, and the outcome to a response.
//
// A Handler is one endpoint. Mutate changes objects and pins images. Validate verifies images
// again, after all mutations, and evaluates the object. Policies rejects broken policies. The
// protocol is admission.k8s.io/v1 of Kubernetes 1.37; patches are JSON Patch (RFC 6902).
//
// A Shadow evaluates requests with these endpoints and admits all of them.
//
// If the request's UID can be read, a failure is a denial, never an HTTP error: an error would
// apply the webhook's failurePolicy, which covers all policies at once. Annotations are records.
// They are never used for a decision about an image.
package admission

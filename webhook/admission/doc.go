// Package admission answers: how does an AdmissionReview become a question for
// the gate, and the outcome its answer?
//
// A Handler is one door: Mutate changes objects and pins images, Validate proves again
// what Mutate or somebody else let through, and judges the object. Policies is the door that refuses broken policies.
// The protocol is admission.k8s.io/v1 as an API server of Kubernetes 1.36 speaks
// it; patches are JSON Patch (RFC 6902).
//
// A Shadow asks what doors would say and admits whatever comes.
//
// An answer is a denial, never an HTTP error, wherever the request's UID could be
// read: an error would be handed to the failurePolicy of the webhook, which
// speaks for all policies at once. Annotations are records: none of them is read
// for a decision about an image.
package admission

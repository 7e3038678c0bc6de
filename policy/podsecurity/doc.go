// Package podsecurity answers: does a pod meet a Pod Security Standard, apart
// from what a policy excludes?
//
// The standards are those of Kubernetes 1.36 ("Pod Security Standards"), and its
// own checks (k8s.io/pod-security-admission) judge: nothing here knows what is
// allowed. The exclusions are those of Kyverno 1.19 (validate.podSecurity): a
// control as a whole, for containers of some images, or for one field with some
// values. Which fields a violation is about is found out by asking the check
// about each field alone, so a field is never excluded that is not the culprit.
//
// Three things are stricter than in Kyverno: a level or version is the standard's
// (privileged restricts nothing, v1.29 is what it was in 1.29); an exclusion
// without images excludes no container, not even the first one; and of two
// containers only the one with the image is excluded, whatever they are called.
package podsecurity

// Package podsecurity checks pods against the Pod Security Standards, with a policy's
// exclusions.
//
// The standards are those of Kubernetes 1.37 ("Pod Security Standards"), and are evaluated
// by its own checks (k8s.io/pod-security-admission); this package has no rules of its own.
// The exclusions are those of Kyverno 1.19 (validate.podSecurity): a control as a whole,
// for containers of some images, or for one field with some values. To find the fields of
// a violation, the check is run on each field alone, so only a field that causes a
// violation is ever excluded.
//
// Two behaviours are Kyverno's, and stricter than in Kubernetes. A version before a check has the
// check's first revision, and user namespaces (hostUsers: false) relax nothing.
//
// Two behaviours are stricter than in Kyverno. An exclusion without images excludes no
// container, not even the first one. Of two containers only the one with the image is
// excluded, whatever their names. Others differ: the level privileged restricts nothing, and
// the latest version is that of Kubernetes 1.37.
package podsecurity

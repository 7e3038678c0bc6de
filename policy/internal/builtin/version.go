package builtin

import "strings"

// MayHaveVersion reports whether a release of Kubernetes may serve the resource in a version, or in
// one that a pattern matches. The core group has v1 alone; of the other groups autoscaling has v2,
// too. Which alpha and beta versions these had is not known here.
func (r Resource) MayHaveVersion(version string) bool {
	if strings.ContainsAny(version, "*?") {
		return true
	}
	isStable := !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
	return version == "v1" || r.Group == "autoscaling" && version == "v2" || r.Group != "" && !isStable
}

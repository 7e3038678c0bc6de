package mapping

import "strings"

// hasOtherNames reports whether a host, or one that matches its wildcard, may have repositories with
// other names. It only saves look-ups, so it may be wrong about one that has none.
func hasOtherNames(host affix) bool {
	ending := host.before
	if host.wild {
		ending = host.after
	}
	for _, domain := range []string{
		".amazonaws.com", ".on.aws", ".amazonaws.com.cn", ".on.amazonwebservices.com.cn", ".ecr.aws", "-public.aws.com", "gcr.io", "-docker.pkg.dev",
	} {
		if strings.HasSuffix(ending, domain) || host.wild && strings.HasSuffix(domain, ending) {
			return true
		}
	}
	// An address, which may end in the wildcard.
	if host.wild {
		return strings.HasPrefix(ending, ":")
	}
	return strings.HasPrefix(ending, "[") || ending != "" && ending[0] >= '0' && ending[0] <= '9'
}

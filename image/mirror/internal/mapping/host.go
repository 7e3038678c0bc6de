package mapping

import (
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// hasOtherNames reports whether a host, or one that matches its wildcard, may have other names.
func hasOtherNames(host affix) bool {
	if !host.wild {
		return len(image.OtherRegistries(host.before)) > 0
	}
	for _, domain := range []string{".amazonaws.com", ".on.aws", ".amazonaws.com.cn", ".on.amazonwebservices.com.cn"} {
		if strings.HasSuffix(host.after, domain) || strings.HasSuffix(domain, host.after) {
			return true
		}
	}
	return false
}

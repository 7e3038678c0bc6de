package authority

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/internal/spelling"
)

// predicateTypes returns the URIs of the types of --attestation.
func (f *Flags) predicateTypes() ([]string, error) {
	uris := make([]string, len(f.attestations))
	for i, name := range f.attestations {
		uris[i] = attest.PredicateURI(name)
		if !strings.Contains(uris[i], ":") {
			return nil, fmt.Errorf("--attestation %s%s; want a URI, or one of %s",
				name, spelling.DidYouMean(spelling.Similar(name, attestationTypes())), strings.Join(attestationTypes(), ", "))
		}
	}
	return uris, nil
}

// attestationTypes are the short names of attest.PredicateURI.
func attestationTypes() []string {
	return []string{"slsaprovenance", "slsaprovenance02", "slsaprovenance1", "spdxjson", "spdx", "cyclonedx", "link", "vuln", "openvex", "custom"}
}

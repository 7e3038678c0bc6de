package attest

import (
	"github.com/in-toto/in-toto-golang/in_toto"
	slsa02 "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v0.2"
	slsa1 "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"
)

// Predicate types.
const (
	PredicateSLSAv02   = slsa02.PredicateSLSAProvenance
	PredicateSLSAv1    = slsa1.PredicateSLSAProvenance
	PredicateSPDX      = in_toto.PredicateSPDX
	PredicateCycloneDX = in_toto.PredicateCycloneDX
	PredicateLink      = in_toto.PredicateLinkV1
	// PredicateVuln is cosign's record of a vulnerability scan.
	PredicateVuln = "https://cosign.sigstore.dev/attestation/vuln/v1"
	// PredicateCustom is cosign's wrapper of other content.
	PredicateCustom = "https://cosign.sigstore.dev/attestation/v1"
	// PredicateOpenVEX is cosign's type. OpenVEX documents also name their version: a statement's
	// type may have it as a suffix, as in /v0.2.0.
	PredicateOpenVEX = "https://openvex.dev/ns"
	// PredicateVSA is SLSA's verification summary.
	PredicateVSA = "https://slsa.dev/verification_summary/v1"
)

// predicateNames are the short names of cosign's command line. If a type has two, the first is
// used in messages.
var predicateNames = []struct{ short, uri string }{
	{"slsaprovenance", PredicateSLSAv02},
	{"slsaprovenance02", PredicateSLSAv02},
	{"slsaprovenance1", PredicateSLSAv1},
	{"spdxjson", PredicateSPDX},
	{"spdx", PredicateSPDX},
	{"cyclonedx", PredicateCycloneDX},
	{"link", PredicateLink},
	{"vuln", PredicateVuln},
	{"openvex", PredicateOpenVEX},
	{"custom", PredicateCustom},
}

// PredicateURI returns the predicate type of one of cosign's short names (slsaprovenance is
// v0.2), and any other string unchanged.
func PredicateURI(short string) string {
	for _, name := range predicateNames {
		if name.short == short {
			return name.uri
		}
	}
	return short
}

// PredicateName returns cosign's short name of a predicate type, for messages, and any other type
// unchanged. PredicateURI of the result is uri again.
func PredicateName(uri string) string {
	for _, name := range predicateNames {
		if name.uri == uri {
			return name.short
		}
	}
	return uri
}

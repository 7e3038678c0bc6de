package config

import (
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/required"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Trust is the default trust for signatures.
type Trust struct {
	// A trusted_root.json file in place of the public-good instance's. It is read at the start.
	TrustedRoot string `json:"trustedRoot,omitempty"`
	// Follow the public-good TUF repository for newer roots, in the background. Not together with
	// trustedRoot.
	Refresh bool `json:"refresh,omitempty"`
	// Folder for the metadata of TUF repositories, that of trust.refresh and those that policies
	// name. It prevents rollback attacks, also after a restart. A start without access to a
	// repository uses the last root that was read. A user with write access to the folder controls
	// that root. Default: no folder, and after a restart a repository may return to an earlier state
	// that has not expired, also to keys that it has replaced.
	CacheFolder string `json:"cacheFolder,omitempty"`
	// Lost or replaced keys, by the SHA-256 of the public key (64 hexadecimal digits), and the
	// time (RFC 3339) after which their signatures are rejected, whichever policy names them. The
	// time is a transparency log's or a timestamp authority's; a signature with neither is always
	// rejected.
	RetiredKeys map[string]time.Time `json:"retiredKeys,omitempty"`
	// Identities of short-lived certificates that are bounded in time, whichever policy names them: lost
	// accounts, and workflows that replace others.
	RetiredIdentities []RetiredIdentity `json:"retiredIdentities,omitempty"`
	// Builders of SLSA provenance in addition to the known ones, for requirements.
	Builders []required.Builder `json:"builders,omitempty"`
}

// RetiredIdentity bounds the signatures of an identity in time. The time is a transparency log's or a timestamp
// authority's; a signature with neither is always rejected. At least one bound is set.
type RetiredIdentity struct {
	// OpenID Connect issuer: * matches any run of characters.
	Issuer string `json:"issuer"`
	// Subject of the certificate, such as a workflow or an email address: * matches any run of characters.
	Subject string `json:"subject"`
	// Accept only signatures of this time (RFC 3339) and later.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Accept only signatures of this time (RFC 3339) and earlier.
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// Identities returns the retired identities, for a trust store.
func (c Trust) Identities() []verify.RetiredIdentity {
	var list []verify.RetiredIdentity
	for _, r := range c.RetiredIdentities {
		list = append(list, verify.RetiredIdentity{
			Identity:  verify.Identity{Issuer: verify.Wildcard(r.Issuer), Subject: verify.Wildcard(r.Subject)},
			NotBefore: r.NotBefore, NotAfter: r.NotAfter,
		})
	}
	return list
}

// Retired returns the retired keys, for a trust store.
func (c Trust) Retired() []trust.Retired {
	var list []trust.Retired
	for fingerprint, end := range c.RetiredKeys {
		list = append(list, trust.Retired{Fingerprint: fingerprint, NotAfter: end})
	}
	return list
}

package gateway

import (
	"time"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// Trust says whom signatures rest on where a policy does not.
type Trust struct {
	// A trusted_root.json file in place of the public-good instance's. It is read
	// at the start.
	TrustedRoot string `json:"trustedRoot,omitempty"`
	// Follow the public-good TUF repository for newer roots, beside requests. Not
	// together with trustedRoot.
	Refresh bool `json:"refresh,omitempty"`
	// Folder for the metadata of TUF repositories, that of trust.refresh and those
	// that policies name, which guards against rollback: of the repository, and of a
	// start that cannot reach it, which begins with the root that was read last: who can
	// write the folder says what is trusted then. Default: none is kept, and a repository
	// may go back to what it said earlier, as long as that has not expired.
	CacheFolder string `json:"cacheFolder,omitempty"`
	// Keys that were lost or replaced, by the SHA-256 of the public key (64 hexadecimal
	// digits), and the time (RFC 3339) after which what they signed proves nothing,
	// whichever policy names them. The time is a transparency log's or a timestamp
	// authority's; a signature with neither is not believed at all.
	RetiredKeys map[string]time.Time `json:"retiredKeys,omitempty"`
}

// Retired returns the retired keys, for a trust store.
func (c Trust) Retired() []trust.Retired {
	var list []trust.Retired
	for fingerprint, end := range c.RetiredKeys {
		list = append(list, trust.Retired{Fingerprint: fingerprint, NotAfter: end})
	}
	return list
}

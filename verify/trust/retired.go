package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// Retired is a key that its owner has lost or withdrawn. Later signatures by it are rejected,
// independently of how a policy refers to the key and its owner.
type Retired struct {
	// Fingerprint is the SHA-256 of the key in PKIX form: 64 hexadecimal digits.
	Fingerprint string
	// NotAfter is the last time of a valid signature, by a transparency log or a timestamp
	// authority. A key alone has no trusted time, so a signature without either is rejected at
	// any time.
	NotAfter time.Time
}

// maxRetired bounds the list, because it is searched for each authority. With more lost keys than
// that, remove them from the policies.
const maxRetired = 1000

// retired maps fingerprints of keys to their ends.
type retired map[string]time.Time

func newRetired(list []Retired) (retired, error) {
	if len(list) > maxRetired {
		return nil, fmt.Errorf("trust: %d retired keys are more than the bound of %d", len(list), maxRetired)
	}
	all := make(retired, len(list))
	for i, r := range list {
		sum, err := hex.DecodeString(r.Fingerprint)
		switch {
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("trust: retired key %d: fingerprint %q: want the SHA-256 of the key, 64 hexadecimal digits (openssl pkey -pubin -in KEY -outform DER | sha256sum)", i, shorten(r.Fingerprint))
		case r.NotAfter.IsZero():
			return nil, fmt.Errorf("trust: retired key %s: want the time after which it is not believed", r.Fingerprint)
		}
		name := hex.EncodeToString(sum)
		if _, twice := all[name]; twice {
			return nil, errors.New("trust: retired key " + name + " is listed twice")
		}
		all[name] = r.NotAfter
	}
	return all, nil
}

// bound returns the authority with the end of its key, if that comes before its own. An authority
// without a key gets all ends, because its signer's key is only in the signature.
func (all retired) bound(authority verify.Authority) verify.Authority {
	if len(all) == 0 {
		return authority
	}
	if authority.Key == nil {
		authority.Retired = all
		return authority
	}
	key, err := parsePEMKey(authority.Key.PEM)
	if err != nil {
		return authority // Material reports the error
	}
	end, is := all[verify.Fingerprint(key, nil)]
	if is && (authority.NotAfter.IsZero() || end.Before(authority.NotAfter)) {
		authority.NotAfter = end
	}
	return authority
}

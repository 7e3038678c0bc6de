package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// Retired is a key that is somebody else's now, or nobody's: whoever a policy says it is,
// and however the policy names it, what it signed later proves nothing.
type Retired struct {
	// Fingerprint is the SHA-256 of the key in PKIX form: 64 hexadecimal digits.
	Fingerprint string
	// NotAfter is the last moment at which it signed for its owner, by the time of a
	// transparency log or a timestamp authority: a key alone knows none, so that a
	// signature without either is not believed, whenever it was made.
	NotAfter time.Time
}

// maxRetired bounds the list, which is looked through for each authority: a company that
// has lost more keys than that removes them from its policies.
const maxRetired = 1000

// retired are keys by their fingerprints.
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

// bound returns the authority with the end of its key, if that comes before its own. One
// that names no key has the ends of all: its signer's travels with the signature.
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
		return authority // Material says what is wrong with it
	}
	end, is := all[verify.Fingerprint(key, nil)]
	if is && (authority.NotAfter.IsZero() || end.Before(authority.NotAfter)) {
		authority.NotAfter = end
	}
	return authority
}

package image

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Digest is the hash of some bytes. The zero value is no digest; every other value was validated
// when it was made, so it is safe in a path or a URL.
type Digest struct{ s string }

// digestAlgorithms lists the registered algorithms of the OCI Image Specification 1.1 and the
// length of their hexadecimal form.
var digestAlgorithms = map[string]int{"sha256": 64, "sha512": 128}

// ParseDigest parses "algorithm:hex" in its one canonical form: sha256 or sha512, lower-case
// hexadecimal of the exact length.
func ParseDigest(s string) (Digest, error) {
	algorithm, encoded, ok := strings.Cut(s, ":")
	if !ok {
		return Digest{}, fmt.Errorf("digest %q: want algorithm:hex, such as sha256:<64 digits>", shorten(s))
	}
	want, known := digestAlgorithms[algorithm]
	if !known {
		return Digest{}, fmt.Errorf("digest %q: algorithm %q is not sha256 or sha512", shorten(s), shorten(algorithm))
	}
	if len(encoded) != want {
		return Digest{}, fmt.Errorf("digest %q: %s has %d hexadecimal digits, got %d", shorten(s), algorithm, want, len(encoded))
	}
	for i := range len(encoded) {
		if c := encoded[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Digest{}, fmt.Errorf("digest %q: %q is not a lower-case hexadecimal digit", shorten(s), c)
		}
	}
	return Digest{s: s}, nil
}

// MustParseDigest is ParseDigest for constants in tests and examples; it
// panics on a malformed digest.
func MustParseDigest(s string) Digest {
	d, err := ParseDigest(s)
	if err != nil {
		panic(err)
	}
	return d
}

// DigestOf returns the sha256 digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest{s: "sha256:" + hex.EncodeToString(sum[:])}
}

// Matches reports whether b hashes to d under d's algorithm. The zero Digest
// matches nothing.
func (d Digest) Matches(b []byte) bool {
	h, err := d.NewHash()
	if err != nil {
		return false
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)) == d.Hex()
}

// NewHash returns a new hash of d's algorithm, for readers that verify while reading. The zero
// Digest has none.
func (d Digest) NewHash() (hash.Hash, error) {
	switch d.Algorithm() {
	case "sha256":
		return sha256.New(), nil
	case "sha512":
		return sha512.New(), nil
	default:
		return nil, errors.New("the zero digest has no algorithm")
	}
}

// Algorithm returns "sha256" or "sha512", or "" for the zero Digest.
func (d Digest) Algorithm() string {
	algorithm, _, _ := strings.Cut(d.s, ":")
	return algorithm
}

// Hex returns the hexadecimal part.
func (d Digest) Hex() string {
	_, encoded, _ := strings.Cut(d.s, ":")
	return encoded
}

// IsZero reports whether d is the zero Digest.
func (d Digest) IsZero() bool { return d.s == "" }

// String returns "algorithm:hex", or "" for the zero Digest.
func (d Digest) String() string { return d.s }

// MarshalText makes a Digest a plain string in JSON.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.s), nil }

// UnmarshalText parses the output of MarshalText, with ParseDigest's checks.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Digest{}
		return nil
	}
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// shorten keeps untrusted text in an error message readable.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

package trust

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the public-good root
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify/internal/trustedroot"
)

// publicGood is the trusted root of the public-good Sigstore instance with its
// Rekor v1 and v2 logs, certificate authorities, certificate transparency logs
// and timestamp authority. It is public data of the Sigstore project
// (https://github.com/sigstore/root-signing, target trusted_root.json, also in
// the sigstore-go module), kept here so that a start needs no network.
//
//go:embed public_good.json
var publicGood []byte

// Private is the trust of a private Sigstore instance in PEM, in place of a trusted_root.json.
// Fields that are not set stay empty: nothing is taken from the public-good instance.
type Private struct {
	// Fulcio are the certificates of the certificate authority.
	Fulcio []byte
	// Rekor are public keys of transparency logs.
	Rekor []byte
	// RekorURL is the address of the log, which identifies a Rekor v2 log. It is never contacted.
	RekorURL string
	// CT are public keys of certificate transparency logs.
	CT []byte
	// TSA is the certificate chain of a timestamp authority.
	TSA []byte
}

func (p Private) isZero() bool {
	return len(p.Fulcio)+len(p.Rekor)+len(p.CT)+len(p.TSA) == 0
}

// source is a root before parsing: its name, its content in canonical form, and its parser.
type source struct {
	origin    string
	canonical []byte
	parse     func() (root.TrustedMaterial, error)
}

func jsonSource(origin string, text []byte) (source, error) {
	if len(text) > MaxRoot {
		return source{}, fmt.Errorf("trusted root (%s): %d bytes are more than the bound of %d", origin, len(text), MaxRoot)
	}
	return source{
		origin:    origin,
		canonical: canonicalJSON(text),
		parse: sync.OnceValues(func() (root.TrustedMaterial, error) {
			return parseRoot(origin, text)
		}),
	}, nil
}

func parseRoot(origin string, text []byte) (root.TrustedMaterial, error) {
	if len(text) > MaxRoot {
		return nil, fmt.Errorf("trusted root (%s): %d bytes are more than the bound of %d", origin, len(text), MaxRoot)
	}
	parsed, err := trustedroot.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("trusted root (%s) cannot be read; want trusted_root.json of media type %s: %w", origin, root.TrustedRootMediaType01, err)
	}
	return parsed, nil
}

func privateSource(p Private) source {
	content := map[string]string{"rekorURL": p.RekorURL}
	for name, text := range map[string][]byte{"fulcio": p.Fulcio, "rekor": p.Rekor, "ct": p.CT, "tsa": p.TSA} {
		sum := sha256.Sum256(bytes.TrimSpace(text))
		content[name] = hex.EncodeToString(sum[:])
	}
	canonical, err := json.Marshal(content) // the keys of a map are sorted
	if err != nil {
		canonical = nil // strings always encode
	}
	return source{
		origin:    "private PEM files",
		canonical: canonical,
		parse:     sync.OnceValues(func() (root.TrustedMaterial, error) { return p.compose() }),
	}
}

func (p Private) compose() (root.TrustedMaterial, error) {
	m := &Material{}
	var err error
	if len(p.Fulcio) > 0 {
		m.authorities, err = composeAuthorities(p.Fulcio)
		if err != nil {
			return nil, fmt.Errorf("certificates of Fulcio: %w", err)
		}
	}
	if len(p.Rekor) > 0 {
		m.logs, err = composeLogs(p.Rekor, p.RekorURL)
		if err != nil {
			return nil, fmt.Errorf("keys of Rekor: %w", err)
		}
	}
	if len(p.CT) > 0 {
		m.ctLogs, err = composeLogs(p.CT, "")
		if err != nil {
			return nil, fmt.Errorf("certificate transparency keys: %w", err)
		}
	}
	if len(p.TSA) > 0 {
		tsa, err := composeTimestampAuthority(p.TSA)
		if err != nil {
			return nil, fmt.Errorf("timestamp authority: %w", err)
		}
		m.timestamping = []root.TimestampingAuthority{tsa}
	}
	return m, nil
}

// canonicalJSON returns the same text for equal JSON: white space and the order of keys do not
// change a root. Invalid JSON is returned as it is; its parser reports the error.
func canonicalJSON(text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return text
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return canonical
}

// sourceOf selects the root from the options.
func sourceOf(o Options) (source, error) {
	switch {
	case len(o.TrustedRoot) > 0 && !o.Private.isZero():
		return source{}, errors.New("trust: a trusted root and private PEM files are both given; give one of them")
	case len(o.TrustedRoot) > 0:
		return jsonSource("given trusted_root.json", o.TrustedRoot)
	case !o.Private.isZero():
		return privateSource(o.Private), nil
	default:
		return jsonSource("embedded public-good root", publicGood)
	}
}

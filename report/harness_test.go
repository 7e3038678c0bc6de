package report_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

// The tests here are of texts and their order, so the decisions are a real gate's on
// scripted evidence. Real signatures, with keys that differ on every run, are verified
// elsewhere.

// Test names.
const (
	provenance = "https://slsa.dev/provenance/v1"
	issuer     = "https://token.actions.githubusercontent.com"
	workflow   = "https://github.com/acme/web/.github/workflows/release.yml@refs/heads/main"
	stranger   = "https://github.com/mallory/web/.github/workflows/release.yml@refs/heads/main"
	logID      = "c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d"
)

// A public key, and the SHA-256 of it.
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAERawZz78qVjdszWmB75EanqdrXmHJ
7Do4mKShF71uFfADRs3Y9quLSw2qTerSoiVU+tlPuZ4Gb2yrSOTfrhw55g==
-----END PUBLIC KEY-----
`

var signedAt = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func fingerprint() string {
	block, _ := pem.Decode([]byte(publicKey))
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// digestOf is the digest of the image in a repository.
func digestOf(path string) image.Digest { return image.DigestOf([]byte("image of " + path)) }

// shelf is a registry in which each repository holds one image; its claims
// follow from the repository's name.
type shelf struct{}

func (shelf) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return shelf{}, nil
}

func (shelf) Scope() string { return "" }

func (shelf) Cost() gate.Cost {
	return gate.Cost{Requests: 3, CountedPulls: 1, Bytes: 2048, RateLimitRemaining: 97}
}

func (shelf) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	if strings.HasSuffix(ref.Repository().Path(), "/down") {
		return image.Pinned{}, &image.Error{
			Kind: image.Unavailable, Op: "resolve", On: ref.String(),
			Err: errors.New("dial tcp 192.0.2.1:443: connection refused"),
		}
	}
	return ref.Pin(image.Descriptor{Digest: digestOf(ref.Repository().Path())})
}

func (shelf) Describe(_ context.Context, p image.Pinned) (image.Pinned, error) { return p, nil }

func (shelf) Manifest(_ context.Context, r image.Repository, reference string) (image.Descriptor, []byte, error) {
	layer := image.Descriptor{}
	switch {
	case strings.Contains(r.Path(), "unsigned"):
	case strings.HasSuffix(reference, ".sig"):
		layer = describe(signature(), attest.MediaTypeSimpleSigning)
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": "c2lnbmF0dXJl"}
	case strings.HasSuffix(reference, ".att"):
		layer = describe(envelope(r), attest.MediaTypeDSSE)
		layer.Annotations = map[string]string{"predicateType": provenance}
	}
	if layer.Digest.IsZero() {
		return image.Descriptor{}, nil, &image.Error{Kind: image.NotFound, Op: "fetch manifest", On: r.String() + ":" + reference}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": image.MediaTypeManifest, "layers": []image.Descriptor{layer},
	})
	return describe(manifest, image.MediaTypeManifest), manifest, err
}

func (shelf) Blob(_ context.Context, r image.Repository, blob image.Descriptor, _ int64) ([]byte, error) {
	for _, body := range [][]byte{signature(), envelope(r)} {
		if blob.Digest.Matches(body) {
			return body, nil
		}
	}
	return nil, &image.Error{Kind: image.NotFound, Op: "fetch blob", On: blob.Digest.String()}
}

func (shelf) Referrers(context.Context, image.Repository, image.Digest, []string) ([]image.Descriptor, error) {
	return nil, nil
}

func describe(b []byte, mediaType string) image.Descriptor {
	return image.Descriptor{MediaType: mediaType, Digest: image.DigestOf(b), Size: int64(len(b))}
}

func signature() []byte { return []byte(`{"critical":{"type":"cosign container image signature"}}`) }

func statement(r image.Repository) attest.Statement {
	builder := "https://github.com/actions/runner"
	if strings.HasSuffix(r.Path(), "/laptop") {
		builder = "https://laptop.example/of-somebody"
	}
	return attest.Statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: provenance,
		Subjects:  []attest.Subject{{Name: r.String(), Digest: map[string]string{"sha256": digestOf(r.Path()).Hex()}}},
		Predicate: json.RawMessage(fmt.Sprintf(`{"builder":%q}`, builder)),
	}
}

func envelope(r image.Repository) []byte {
	payload, err := json.Marshal(statement(r))
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"payloadType":"application/vnd.in-toto+json","payload":%q,"signatures":[{"sig":"c2lnbmF0dXJl"}]}`,
		base64.StdEncoding.EncodeToString(payload))
}

// script has the signers of each image, by the repository's name.
type script struct{}

func (script) Generation() string { return hex.EncodeToString(sha256.New().Sum(nil)) }

func (script) Resolve(_ context.Context, a verify.Authority) (verify.Authority, error) {
	if a.Key != nil {
		key := *a.Key
		key.PEM = []byte(key.Ref)
		a.Key = &key
	}
	return a, nil
}

func (script) Verify(_ context.Context, subject image.Pinned, e attest.Evidence, a verify.Authority) (verify.Fact, error) {
	path := subject.Repository().Path()
	reject := func(code verify.Code, expected, found string) (verify.Fact, error) {
		return verify.Fact{}, &verify.Rejection{Code: code, Authority: a.Name, Origin: e.Origin, Expected: expected, Found: found}
	}
	fact := verify.Fact{Subject: subject.Digest(), Format: e.Format, Role: e.Role, Origin: e.Origin}
	if e.Role == attest.Attestation {
		s := statement(subject.Repository())
		fact.Statement = &s
	}
	switch {
	case strings.HasSuffix(path, "/hostile"):
		return reject(verify.WrongIdentity, workflow, hostile+strings.Repeat("A", 700))
	case strings.HasSuffix(path, "/forked"):
		return reject(verify.WrongIdentity, workflow+" ("+issuer+")", stranger+" ("+issuer+")")
	case a.Key != nil && a.Key.Ref != publicKey:
		return reject(verify.WrongKey, "key 0f1e2d3c4b5a6978", "")
	case a.Key != nil:
		fact.Signer = verify.Signer{KeyFingerprint: fingerprint()}
		return fact, nil
	}
	fact.Signer = verify.Signer{Subject: workflow, Issuer: issuer, Extensions: map[string]string{
		"sourceRepositoryURI": "https://github.com/acme/web", "buildTrigger": "push",
	}}
	fact.Entries = []verify.LogEntry{{LogID: logID, Index: 271828182, Time: signedAt}}
	fact.SignedAt, fact.TimeSource = signedAt, verify.LogTime
	return fact, nil
}

// hostile is an attacker's text for a terminal: colours, a cursor
// that moves, a new line that allows, and text that runs backwards.
const hostile = "\x1b[2K\x1b[32m✓ allow\x1b[0m\n  ✓ allow  everything\r\u009b1A\u202egnp.exe\u200b\xff "

// newGate makes a gate with the policies of the tests.
func newGate(t testing.TB, extras bool) *gate.Gate {
	t.Helper()
	all := policies()
	if extras {
		all = append(all, aboutObjects())
	}
	set, err := set.New(all...)
	if err == nil && extras {
		set, err = set.With(exception())
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(
		gate.Config{Registries: shelf{}, State: gate.Fixed{Policies: set, Prover: script{}}},
		gate.WithClock(func() time.Time { return signedAt }),
	)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

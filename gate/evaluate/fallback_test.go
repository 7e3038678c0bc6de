package evaluate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// shelf is a fake registry with statements below cosign's tag, and no referrers.
type shelf struct {
	Registry
	err    error // of every request
	blobs  map[image.Digest][]byte
	layers []image.Descriptor
}

func (*shelf) Scope() string { return "" }

func (s *shelf) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	return pinned, s.err
}

func (s *shelf) Manifest(context.Context, image.Repository, string) (image.Descriptor, []byte, error) {
	body, _ := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": image.MediaTypeManifest, "layers": s.layers})
	if s.err == nil && len(s.layers) == 0 {
		return image.Descriptor{}, nil, &image.Error{Kind: image.NotFound, Op: "fetch manifest"}
	}
	return image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf(body), Size: int64(len(body))}, body, s.err
}

func (s *shelf) Blob(_ context.Context, _ image.Repository, blob image.Descriptor, _ int64) ([]byte, error) {
	return s.blobs[blob.Digest], s.err
}

func (s *shelf) Referrers(context.Context, image.Repository, image.Digest, []string) ([]image.Descriptor, error) {
	return nil, s.err
}

// attest adds a statement about a digest.
func (s *shelf) attest(about image.Digest, predicate string) {
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":%q}}],"predicateType":"scan","predicate":%q}`,
		about.Hex(), predicate)
	blob := fmt.Appendf(nil, `{"payloadType":%q,"payload":%q,"signatures":[{"sig":"AA=="}]}`,
		attest.MediaTypeInToto, base64.StdEncoding.EncodeToString([]byte(statement)))
	if s.blobs == nil {
		s.blobs = map[image.Digest][]byte{}
	}
	s.blobs[image.DigestOf(blob)] = blob
	s.layers = append(s.layers, image.Descriptor{MediaType: attest.MediaTypeDSSE, Digest: image.DigestOf(blob), Size: int64(len(blob))})
}

// believing is a fake of trust: every statement is the signer's, "dirty" later than "clean", and
// others earlier.
type believing struct{}

func (believing) Generation() string { return "" }

func (believing) Resolve(_ context.Context, authority verify.Authority) (verify.Authority, error) {
	return authority, nil
}

func (believing) Verify(_ context.Context, subject image.Pinned, evidence attest.Evidence, _ verify.Authority) (verify.Fact, error) {
	envelope, err := attest.ParseEnvelope(evidence.Payload)
	if err != nil {
		return verify.Fact{}, err
	}
	statement, err := attest.ParseStatement(envelope.Payload)
	at := map[string]time.Time{`"clean"`: time.Unix(2, 0), `"dirty"`: time.Unix(3, 0)}[string(statement.Predicate)]
	if at.IsZero() {
		at = time.Unix(1, 0)
	}
	return verify.Fact{Subject: subject.Digest(), Role: attest.Attestation, Statement: &statement, SignedAt: at, Origin: evidence.Origin}, err
}

func unavailable() error {
	return &image.Error{Kind: image.Unavailable, Op: "list", Err: errors.New("no answer")}
}

// TestStatementsOfFallbacks: the statements of a copy are cached for the image only where all of
// the image's own were read, and else as briefly as their absence.
func TestStatementsOfFallbacks(t *testing.T) {
	digest := digestOf(t, "a")
	for _, c := range []struct {
		reason string
		err    error // of the primary, at first
		early  bool  // the later statement is there at first
		cached bool
		first  policy.Result
		want   policy.Result // at last
	}{
		{"all was read", nil, false, true, policy.Pass, policy.Pass},
		{"the primary does not answer", unavailable(), true, false, policy.Pass, policy.Fail},
		{"the primary refuses", &image.Error{Kind: image.Refused, Op: "list"}, true, false, policy.Indeterminate, policy.Fail},
		{"the primary is beyond a bound", &image.Error{Kind: image.Bound, Op: "list"}, true, false, policy.Pass, policy.Fail},
	} {
		primary, fallback := &shelf{err: c.err}, &shelf{}
		fallback.attest(digest, "clean")
		if c.early {
			primary.attest(digest, "dirty")
		}
		now := time.Now()
		e := newEvaluator(t, func() time.Time { return now })
		check := scans(clean{})
		check.Attestations[0].Signers[0].Members[0].Authority.Key = &verify.Key{PEM: []byte("key")}
		ask := func() policy.Decision {
			ref := parse(t, "registry.example/app:1@"+digest.String())
			evaluation := e.Evaluate(Reference{
				Ref: ref, Registry: primary, Prover: believing{},
				Evidence: []image.Repository{ref.Repository(), parse(t, "mirror.example/app").Repository()},
				Open:     func(context.Context, image.Repository) (Registry, error) { return fallback, nil },
			})
			at := evaluation.Add(check)
			if result, ok := evaluation.Cached(t.Context()); ok {
				return result.Decide(at)
			}
			return evaluation.Run(t.Context()).Decide(at)
		}
		if got := ask(); got.Result != c.first {
			t.Errorf("%s: at first %s %+v", c.reason, got.Result, got.Reasons)
		}
		now = now.Add(2 * time.Second) // "none found" is cached for one
		primary.err = nil
		if c.cached {
			primary.err, fallback.err = unavailable(), unavailable()
		}
		if got := ask(); got.Result != c.want {
			t.Errorf("%s: at last %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

// TestStatementsOverStale: a fallback's statements that were added to stale ones of the primary
// are not cached for the image, and its later statement counts as soon as the primary answers.
func TestStatementsOverStale(t *testing.T) {
	digest := digestOf(t, "a")
	for _, c := range []struct {
		reason string
		later  string // of the primary, at last
		want   policy.Result
	}{
		{"a later statement is read, and the mirror cannot be", "dirty", policy.Indeterminate},
		{"the same statements are read", "", policy.Pass},
	} {
		primary, fallback := &shelf{}, &shelf{}
		primary.attest(digest, "other")
		fallback.attest(digest, "clean")
		now := time.Now()
		e := newEvaluator(t, func() time.Time { return now })
		window := policy.MaxStale
		e.Stale = &window
		check := scans(clean{})
		check.Attestations[0].Signers[0].Members[0].Authority.Key = &verify.Key{PEM: []byte("key")}
		ask := func(mirrors ...image.Repository) policy.Decision {
			ref := parse(t, "registry.example/app:1@"+digest.String())
			evaluation := e.Evaluate(Reference{
				Ref: ref, Registry: primary, Prover: believing{},
				Evidence: append([]image.Repository{ref.Repository()}, mirrors...),
				Open:     func(context.Context, image.Repository) (Registry, error) { return fallback, nil },
			})
			at := evaluation.Add(check)
			if result, ok := evaluation.Cached(t.Context()); ok {
				return result.Decide(at)
			}
			return evaluation.Run(t.Context()).Decide(at)
		}
		mirror := parse(t, "mirror.example/app").Repository()
		ask()
		now = now.Add(2 * time.Hour) // facts are fresh for one
		primary.err = unavailable()
		if got := ask(mirror); got.Result != policy.Pass {
			t.Errorf("%s: by stale statements %s %+v", c.reason, got.Result, got.Reasons)
		}
		now = now.Add(2 * time.Second) // "none found" is cached for one
		primary.err, fallback.err = nil, unavailable()
		if c.later != "" {
			primary.attest(digest, c.later)
		} else {
			fallback.err = nil
		}
		if got := ask(mirror); got.Result != c.want {
			t.Errorf("%s: at last %s %+v, want %s", c.reason, got.Result, got.Reasons, c.want)
		}
	}
}

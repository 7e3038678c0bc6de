package attest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

var _ attest.Fetcher = (*store)(nil)

// store is a registry in memory that can lie, fail and take its time. It keeps the promises of
// attest.Fetcher, and no more.
type store struct {
	manifests map[string][]byte             // repository + reference
	blobs     map[image.Digest][]byte       // of all repositories
	referrers map[string][]image.Descriptor // repository + digest
	failures  map[string]error              // by request
	delay     time.Duration                 // of every answer

	mu     sync.Mutex
	calls  []string
	filter [][]string // artifact types that Referrers was asked for
}

func newStore() *store {
	return &store{
		manifests: map[string][]byte{}, blobs: map[image.Digest][]byte{},
		referrers: map[string][]image.Descriptor{}, failures: map[string]error{},
	}
}

func (s *store) answer(ctx context.Context, what string) error {
	s.mu.Lock()
	s.calls = append(s.calls, what)
	s.mu.Unlock()
	if s.delay > 0 {
		time.Sleep(s.delay) //nolint:forbidigo // inside a bubble of testing/synctest
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.failures[what]
}

func (s *store) Manifest(ctx context.Context, r image.Repository, reference string) (image.Descriptor, []byte, error) {
	what := r.String() + " " + reference
	if err := s.answer(ctx, what); err != nil {
		return image.Descriptor{}, nil, err
	}
	b, ok := s.manifests[what]
	if !ok {
		return image.Descriptor{}, nil, failure(image.NotFound, what)
	}
	var m struct{ MediaType string }
	_ = json.Unmarshal(b, &m)
	return image.Descriptor{MediaType: m.MediaType, Digest: image.DigestOf(b), Size: int64(len(b))}, b, nil
}

func (s *store) Blob(ctx context.Context, _ image.Repository, d image.Descriptor, most int64) ([]byte, error) {
	what := "blob " + d.Digest.String()
	if err := s.answer(ctx, what); err != nil {
		return nil, err
	}
	b, ok := s.blobs[d.Digest]
	switch {
	case !ok:
		return nil, failure(image.NotFound, what)
	case int64(len(b)) > most:
		return nil, byContent(what)
	}
	return b, nil
}

func (s *store) Referrers(ctx context.Context, r image.Repository, d image.Digest, types []string) ([]image.Descriptor, error) {
	what := r.String() + " referrers " + d.String()
	s.mu.Lock()
	s.filter = append(s.filter, types)
	s.mu.Unlock()
	err := s.answer(ctx, what)
	if err != nil && image.KindOf(err) != image.Bound {
		return nil, err
	}
	var list []image.Descriptor
	for _, d := range s.referrers[what] {
		if len(types) == 0 || slices.Contains(types, d.ArtifactType) {
			list = append(list, d)
		}
	}
	return list, err
}

func failure(kind image.Kind, on string) error {
	return &image.Error{Kind: kind, Op: "fetch", On: on}
}

// byContent is a failure that the author of a descriptor causes.
func byContent(on string) error {
	return &image.Error{Kind: image.Corrupt, Op: "fetch", On: on, Err: &image.ContentError{Err: errors.New("larger than its descriptor's size")}}
}

// blob keeps bytes and returns a layer of them.
func (s *store) blob(mediaType string, b []byte, annotations map[string]string) image.Descriptor {
	d := image.DigestOf(b)
	s.blobs[d] = b
	return image.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b)), Annotations: annotations}
}

// document is a manifest that carries evidence.
type document struct {
	artifactType, config string
	subject              image.Digest
	annotations          map[string]string
	layers               []image.Descriptor
}

func (d document) encode(t testing.TB) []byte {
	t.Helper()
	config := d.config
	if config == "" {
		config = "application/vnd.oci.empty.v1+json"
	}
	m := map[string]any{
		"schemaVersion": 2, "mediaType": image.MediaTypeManifest,
		"config": map[string]any{"mediaType": config, "digest": image.DigestOf([]byte("{}")), "size": 2},
		"layers": d.layers,
	}
	if d.artifactType != "" {
		m["artifactType"] = d.artifactType
	}
	if !d.subject.IsZero() {
		m["subject"] = map[string]any{"mediaType": image.MediaTypeManifest, "digest": d.subject, "size": 2}
	}
	if d.annotations != nil {
		m["annotations"] = d.annotations
	}
	return encode(t, m)
}

// tag puts a document at a tag.
func (s *store) tag(t testing.TB, r image.Repository, tag string, d document) {
	s.manifests[r.String()+" "+tag] = d.encode(t)
}

// refer lists a document as a referrer of the digest, as registries do.
func (s *store) refer(t testing.TB, r image.Repository, of image.Digest, d document) image.Digest {
	t.Helper()
	listed := d.artifactType
	if listed == "" {
		listed = d.config
	}
	return s.referAs(t, r, of, d, listed)
}

// referAs lists the document under a type of its own.
func (s *store) referAs(t testing.TB, r image.Repository, of image.Digest, d document, listed string) image.Digest {
	t.Helper()
	b := d.encode(t)
	digest := image.DigestOf(b)
	s.manifests[r.String()+" "+digest.String()] = b
	key := r.String() + " referrers " + of.String()
	s.referrers[key] = append(s.referrers[key], image.Descriptor{
		MediaType: image.MediaTypeManifest, Digest: digest, Size: int64(len(b)),
		ArtifactType: listed, Annotations: d.annotations,
	})
	return digest
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// statement returns an in-toto statement about the digest.
func statement(predicateType string, about image.Digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v0.1","predicateType":%q,"subject":[{"name":"app","digest":{%q:%q}}],"predicate":%s}`,
		predicateType, about.Algorithm(), about.Hex(), predicate)
}

// envelope wraps a statement; its signature is of no key.
func envelope(statement []byte) []byte {
	return fmt.Appendf(nil, `{"payloadType":"application/vnd.in-toto+json","payload":%q,"signatures":[{"keyid":"","sig":"c2ln"}]}`,
		base64.StdEncoding.EncodeToString(statement))
}

func dsseBundle(statement []byte) []byte {
	return fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":"a"}},"dsseEnvelope":%s}`,
		attest.MediaTypeBundle, envelope(statement))
}

func messageBundle(salt string) []byte {
	return fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":%q}},"messageSignature":{"signature":"c2ln"}}`,
		attest.MediaTypeBundle, salt)
}

// pinned returns registry.example/app at a made-up digest.
func pinned(t testing.TB) image.Pinned {
	t.Helper()
	p, err := image.MustParse("registry.example/app:v1").Pin(image.Descriptor{Digest: image.DigestOf([]byte("the image"))})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sigTag(d image.Digest) string { return strings.Replace(d.String(), ":", "-", 1) + ".sig" }
func attTag(d image.Digest) string { return strings.Replace(d.String(), ":", "-", 1) + ".att" }

// describe names evidence in a line, for tables.
func describe(e attest.Evidence) string {
	text := string(e.Format) + " " + string(e.Role)
	if e.PredicateType != "" {
		text += " " + e.PredicateType
	}
	return text
}

func describeAll(list []attest.Evidence) []string {
	var out []string
	for _, e := range list {
		out = append(out, describe(e))
	}
	return out
}

var errDown = &image.Error{Kind: image.Unavailable, Op: "fetch", On: "registry.example", Err: errors.New("connection refused")}

package attest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

const (
	slsa = "https://slsa.dev/provenance/v1"
	spdx = "https://spdx.dev/Document"
	sbom = "application/vnd.example.sbom"
)

var (
	own     = image.MustParse("registry.example/app").Repository()
	other   = image.MustParse("registry.example/signatures").Repository()
	subject = image.DigestOf([]byte("the image"))
	foreign = image.DigestOf([]byte("another image"))
)

// everyEvidence is a store with evidence of every sort for the image.
func everyEvidence(t testing.TB) *store {
	s := newStore()
	s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{legacySignature(s, "one"), {MediaType: "text/plain", Digest: foreign, Size: 1}}})
	s.tag(t, own, attTag(subject), document{layers: []image.Descriptor{legacyAttestation(s, slsa, "legacy"), legacyAttestation(s, spdx, "legacy")}})
	s.refer(t, own, subject, cosignReferrer(s, subject))
	s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle("one"), map[string]string{"dev.sigstore.bundle.content": "message-signature"}))
	for _, predicate := range []string{attest.PredicateCosignSign, slsa, spdx} {
		s.refer(t, own, subject, bundleReferrer(s, subject, dsseBundle(statement(predicate, subject, "{}")),
			map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicate}))
	}
	s.refer(t, own, subject, document{artifactType: attest.MediaTypeInToto, subject: subject,
		layers: []image.Descriptor{s.blob(attest.MediaTypeDSSE, envelope(statement(slsa, subject, `"raw"`)), nil)}})
	s.refer(t, own, subject, notationReferrer(s, subject, "one"))
	artifact := s.refer(t, own, subject, document{artifactType: sbom, subject: subject,
		layers: []image.Descriptor{s.blob("application/json", []byte(`{"packages":[]}`), nil)}})
	s.refer(t, own, artifact, notationReferrer(s, artifact, "over the artifact"))
	s.refer(t, own, subject, document{artifactType: "application/vnd.example.unrelated", subject: subject})
	return s
}

func legacySignature(s *store, salt string) image.Descriptor {
	return s.blob(attest.MediaTypeSimpleSigning, fmt.Appendf(nil, `{"critical":{},"optional":{"salt":%q}}`, salt),
		map[string]string{"dev.cosignproject.cosign/signature": "c2ln"})
}

func legacyAttestation(s *store, predicate, salt string) image.Descriptor {
	return s.blob(attest.MediaTypeDSSE, envelope(statement(predicate, subject, fmt.Sprintf("%q", salt))),
		map[string]string{"predicateType": predicate, "dev.cosignproject.cosign/signature": ""})
}

func cosignReferrer(s *store, of image.Digest) document {
	return document{artifactType: attest.ArtifactTypeCosignSignature, config: attest.ArtifactTypeCosignSignature,
		subject: of, layers: []image.Descriptor{legacySignature(s, "referrer")}}
}

func bundleReferrer(s *store, of image.Digest, bundle []byte, annotations map[string]string) document {
	return document{artifactType: attest.MediaTypeBundle, subject: of, annotations: annotations,
		layers: []image.Descriptor{s.blob(attest.MediaTypeBundle, bundle, nil)}}
}

func notationReferrer(s *store, of image.Digest, salt string) document {
	return document{config: attest.ArtifactTypeNotation, subject: of,
		layers: []image.Descriptor{s.blob(attest.MediaTypeJWS, fmt.Appendf(nil, `{"payload":%q}`, salt), nil)}}
}

func TestFindReturnsRequested(t *testing.T) {
	for name, row := range map[string]struct {
		reason string
		want   attest.Want
		found  []string
	}{
		"nothing": {reason: "no request", want: attest.Want{}},
		"signatures": {
			reason: "each format that claims a signature, and no attestation",
			want:   attest.Want{Signatures: true},
			found: []string{
				"bundle signature", "bundle signature " + attest.PredicateCosignSign,
				"cosign signature", "cosign signature", "notation signature",
			},
		},
		"signatures of one format": {
			reason: "a policy of notation certificates has no use for others",
			want:   attest.Want{Signatures: true, Formats: []attest.Format{attest.Notation}},
			found:  []string{"notation signature"},
		},
		"one predicate": {
			reason: "three ways to keep provenance, and nothing of another type",
			want:   attest.Want{Predicates: []string{slsa}},
			found:  []string{"bundle attestation " + slsa, "cosign attestation " + slsa, "cosign attestation " + slsa},
		},
		"one predicate, bundles only": {
			reason: "formats and predicates are both conditions",
			want:   attest.Want{Predicates: []string{slsa}, Formats: []attest.Format{attest.Bundle}},
			found:  []string{"bundle attestation " + slsa},
		},
		"an absent predicate": {
			reason: "no attestation is of this type",
			want:   attest.Want{Predicates: []string{"https://example.com/none"}},
		},
		"artifact": {
			reason: "one evidence for each signature of the document, not those of the image",
			want:   attest.Want{Artifacts: []string{sbom}},
			found:  []string{"notation attestation " + sbom},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := attest.Find(t.Context(), everyEvidence(t), pinned(t), row.want)
			if got := sorted(describeAll(found.Evidence)); !slices.Equal(got, row.found) {
				t.Errorf("%s:\ngot  %q\nwant %q", row.reason, got, row.found)
			}
			if len(found.Gaps)+len(found.Malformed) > 0 {
				t.Errorf("gaps %v, malformed %v; want none", found.Gaps, found.Malformed)
			}
		})
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }

func TestFindFetchesOnlyRequested(t *testing.T) {
	s := everyEvidence(t)
	found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Formats: []attest.Format{attest.Bundle}})
	if len(s.calls) != 1+2+2 { // the list; two manifests; two bundles
		t.Errorf("%d requests, want 5: %q", len(s.calls), s.calls)
	}
	want := []string{"bundle attestation " + slsa, "bundle attestation " + spdx}
	for _, w := range want {
		if !slices.Contains(describeAll(found.Unasked), w) {
			t.Errorf("Unasked %q does not name %q", describeAll(found.Unasked), w)
		}
	}
	for _, e := range found.Unasked {
		if e.Payload != nil {
			t.Errorf("Unasked %s has a payload", describe(e))
		}
	}
	s = everyEvidence(t)
	attest.Find(t.Context(), s, pinned(t), attest.Want{})
	if len(s.calls) != 0 {
		t.Errorf("nothing was wanted, and %q was asked", s.calls)
	}
}

func TestFindReadsPredicateTypesBeforeFetching(t *testing.T) {
	s := everyEvidence(t)
	attest.Find(t.Context(), s, pinned(t), attest.Want{Predicates: []string{slsa}, Formats: []attest.Format{attest.Cosign}})
	spare := "blob " + legacyAttestation(s, spdx, "legacy").Digest.String()
	if asked := "blob " + legacyAttestation(s, slsa, "legacy").Digest.String(); !slices.Contains(s.calls, asked) || slices.Contains(s.calls, spare) {
		t.Errorf("asked for %q; want the provenance and not the bill of materials", s.calls)
	}
}

// TestFindReadsArtifactManifests: notation 1.0 wrote these, with blobs for layers.
func TestFindReadsArtifactManifests(t *testing.T) {
	for name, row := range map[string]struct {
		mediaType string
		found     int
	}{
		"artifact manifest":          {"application/vnd.oci.artifact.manifest.v1+json", 1},
		"blobs in an image manifest": {image.MediaTypeManifest, 0},
	} {
		s := newStore()
		b := encode(t, map[string]any{
			"mediaType": row.mediaType, "artifactType": attest.ArtifactTypeNotation, "subject": map[string]any{"digest": subject},
			"blobs": []image.Descriptor{s.blob(attest.MediaTypeCOSE, []byte("envelope"), nil)},
		})
		s.manifests[own.String()+" "+image.DigestOf(b).String()] = b
		key := own.String() + " referrers " + subject.String()
		s.referrers[key] = []image.Descriptor{{Digest: image.DigestOf(b), ArtifactType: attest.ArtifactTypeNotation}}
		if found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true}); len(found.Evidence) != row.found {
			t.Errorf("%s: found %q, malformed %v; want %d", name, describeAll(found.Evidence), found.Malformed, row.found)
		}
	}
}

func TestFindFillsEvidence(t *testing.T) {
	s := everyEvidence(t)
	found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Artifacts: []string{sbom}})
	for _, e := range found.Evidence {
		if len(e.Payload) == 0 || e.MediaType == "" || e.Origin.Manifest.IsZero() || e.Origin.Repository != own {
			t.Errorf("%s is incomplete: %+v", describe(e), e)
		}
		hasTarget := !e.Target.Digest.IsZero()
		if hasTarget != (e.PredicateType == sbom) {
			t.Errorf("%s: target %v", describe(e), e.Target)
		}
		if hasTarget && (string(e.Content) != `{"packages":[]}` || !e.Target.IsComplete()) {
			t.Errorf("%s: content %q, target %+v", describe(e), e.Content, e.Target)
		}
		if e.Format == attest.Cosign && e.Annotations["dev.cosignproject.cosign/signature"] == "" {
			t.Errorf("%s lost its layer's annotations", describe(e))
		}
	}
}

func TestFindIsDeterministic(t *testing.T) {
	want := attest.Want{Signatures: true, Predicates: []string{slsa, spdx}, Artifacts: []string{sbom}}
	first := attest.Find(t.Context(), everyEvidence(t), pinned(t), want)
	for range 20 {
		s := everyEvidence(t)
		for _, list := range s.referrers {
			slices.Reverse(list)
		}
		again := attest.Find(t.Context(), s, pinned(t), want)
		if !slices.EqualFunc(first.Evidence, again.Evidence, func(a, b attest.Evidence) bool { return a.ID() == b.ID() }) {
			t.Fatalf("order changed:\n%q\n%q", describeAll(first.Evidence), describeAll(again.Evidence))
		}
	}
}

func TestFindReadsEverySource(t *testing.T) {
	s := newStore()
	s.tag(t, other, "prod-"+sigTag(subject), document{layers: []image.Descriptor{legacySignature(s, "elsewhere")}})
	s.refer(t, other, subject, bundleReferrer(s, subject, messageBundle("elsewhere"), nil))
	same := legacySignature(s, "in both")
	s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{same}})
	s.tag(t, other, sigTag(subject), document{layers: []image.Descriptor{same}})

	for name, row := range map[string]struct {
		reason  string
		sources []attest.Source
		found   int
	}{
		"own":         {"no source means the image's repository", nil, 1},
		"other":       {"the repository is replaced, its referrers included", []attest.Source{{Repository: other}}, 2},
		"prefix":      {"a prefix concerns tags only", []attest.Source{{Repository: other, TagPrefix: "prod-"}}, 2},
		"both":        {"the same signature at two places counts once", []attest.Source{{}, {Repository: other}}, 2},
		"everything":  {"places are joined", []attest.Source{{}, {Repository: other}, {Repository: other, TagPrefix: "prod-"}}, 3},
		"wrong place": {"the prefix is not the one in use", []attest.Source{{TagPrefix: "prod-"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Sources: row.sources})
			if len(found.Evidence) != row.found || len(found.Gaps) > 0 {
				t.Errorf("%s: found %q, gaps %v; want %d", row.reason, describeAll(found.Evidence), found.Gaps, row.found)
			}
		})
	}
	for _, prefix := range []string{"../x/", "-a", "a b", strings.Repeat("a", 100)} {
		found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Sources: []attest.Source{{TagPrefix: prefix}}})
		if len(found.Gaps) != 1 || !strings.Contains(found.Gaps[0].Error(), "tag prefix") {
			t.Errorf("prefix %q: gaps %v, want one about the prefix", prefix, found.Gaps)
		}
	}
}

func TestFindCostsRounds(t *testing.T) {
	only := func(add func(t *testing.T, s *store, n int), formats ...attest.Format) func(*testing.T, int) *store {
		return func(t *testing.T, n int) *store {
			s := newStore()
			add(t, s, n)
			return s
		}
	}
	legacy := func(t *testing.T, s *store, n int) {
		var layers []image.Descriptor
		for i := range n {
			layers = append(layers, legacySignature(s, fmt.Sprint(i)))
		}
		s.tag(t, own, sigTag(subject), document{layers: layers})
	}
	bundles := func(t *testing.T, s *store, n int) {
		for i := range n {
			s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle(fmt.Sprint(i)), nil))
		}
	}
	notation := func(t *testing.T, s *store, n int) {
		for i := range n {
			s.refer(t, own, subject, notationReferrer(s, subject, fmt.Sprint(i)))
		}
	}
	artifacts := func(t *testing.T, s *store, n int) {
		digest := s.refer(t, own, subject, document{artifactType: sbom, subject: subject, layers: []image.Descriptor{s.blob("application/json", []byte("{}"), nil)}})
		for i := range n {
			s.refer(t, own, digest, notationReferrer(s, digest, fmt.Sprint(i)))
		}
	}
	all := func(t *testing.T, s *store, n int) { legacy(t, s, n); bundles(t, s, n); notation(t, s, n) }
	signatures := attest.Want{Signatures: true}
	for name, row := range map[string]struct {
		build  func(*testing.T, int) *store
		want   attest.Want
		rounds int
	}{
		"legacy":       {only(legacy), signatures, 2},
		"bundle":       {only(bundles), signatures, 3},
		"notation":     {only(notation), signatures, 3},
		"all together": {only(all), signatures, 3},
		"artifact":     {only(artifacts), attest.Want{Artifacts: []string{sbom}}, 4},
	} {
		for _, n := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				s := row.build(t, n)
				s.delay = time.Second
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					found := attest.Find(t.Context(), s, pinned(t), row.want)
					rounds := int(time.Since(start) / s.delay)
					most := row.rounds
					if name == "all together" && n == 8 {
						most++ // sixteen manifests and eight payloads, sixteen at a time
					}
					if len(found.Evidence) == 0 || rounds > most {
						t.Errorf("%d evidence in %d rounds, want %d", len(found.Evidence), rounds, most)
					}
				})
			})
		}
	}
}

func TestFindAsksForTheTypesThatCouldMatter(t *testing.T) {
	const bundle = "application/vnd.dev.sigstore.bundle"
	bundles := []string{bundle + ".v0.3+json", bundle + "+json;version=0.1", bundle + "+json;version=0.2", bundle + "+json;version=0.3"}
	unknown := []string{"", "application/vnd.oci.empty.v1+json", "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
	for name, row := range map[string]struct {
		reason string
		want   attest.Want
		filter []string
	}{
		"notation": {"the registry can filter", attest.Want{Signatures: true, Formats: []attest.Format{attest.Notation}}, []string{attest.ArtifactTypeNotation}},
		"cosign":   {"the registry can filter", attest.Want{Signatures: true, Formats: []attest.Format{attest.Cosign}}, []string{attest.ArtifactTypeCosignSignature}},
		"bundle":   {"bundles have several types, and some registries list them as empty", attest.Want{Signatures: true, Formats: []attest.Format{attest.Bundle}}, slices.Concat(bundles, unknown)},
		"two": {"one request serves both", attest.Want{Signatures: true, Formats: []attest.Format{attest.Cosign, attest.Notation}},
			slices.Concat([]string{attest.ArtifactTypeCosignSignature, attest.MediaTypeInToto, attest.MediaTypeDSSE, attest.ArtifactTypeNotation}, unknown)},
		"artifact": {"some registries list artifacts as empty", attest.Want{Artifacts: []string{sbom}}, slices.Concat([]string{attest.ArtifactTypeNotation, sbom}, unknown)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			attest.Find(t.Context(), s, pinned(t), row.want)
			if len(s.filter) != 1 || !slices.Equal(s.filter[0], row.filter) {
				t.Errorf("%s: asked %d times, for %q; want once, for %q", row.reason, len(s.filter), s.filter, row.filter)
			}
		})
	}
}

func TestFindSeesThroughListsWithoutTypes(t *testing.T) {
	s := newStore()
	s.referAs(t, own, subject, bundleReferrer(s, subject, messageBundle("one"), nil), "application/vnd.oci.empty.v1+json")
	s.referAs(t, own, subject, notationReferrer(s, subject, "one"), "")
	artifact := s.referAs(t, own, subject, document{artifactType: sbom, subject: subject,
		layers: []image.Descriptor{s.blob("application/json", []byte("{}"), nil)}}, "application/vnd.oci.empty.v1+json")
	s.refer(t, own, artifact, notationReferrer(s, artifact, "two"))
	found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Artifacts: []string{sbom}})
	want := []string{"bundle signature", "notation attestation " + sbom, "notation signature"}
	if got := sorted(describeAll(found.Evidence)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; malformed %v", got, want, found.Malformed)
	}
}

// TestFindDistinguishesAbsentFromUnseen changes one thing about a store with good evidence; its
// row has the expected effect.
func TestFindDistinguishesAbsentFromUnseen(t *testing.T) {
	type outcome struct{ evidence, gaps, malformed int }
	at := func(reference string) string { return own.String() + " " + reference }
	for name, row := range map[string]struct {
		reason string
		harm   func(t *testing.T, s *store)
		want   outcome
	}{
		"unharmed":    {"legacy signature and bundle", func(*testing.T, *store) {}, outcome{2, 0, 0}},
		"no tag":      {"not found is an answer", func(_ *testing.T, s *store) { delete(s.manifests, at(sigTag(subject))) }, outcome{1, 0, 0}},
		"tag down":    {"no answer is a gap", func(_ *testing.T, s *store) { s.failures[at(sigTag(subject))] = errDown }, outcome{1, 1, 0}},
		"tag refused": {"we may not see it", func(_ *testing.T, s *store) { s.failures[at(sigTag(subject))] = failure(image.Refused, "x") }, outcome{1, 1, 0}},
		"list down":   {"no list is a gap", func(_ *testing.T, s *store) { s.failures[at("referrers "+subject.String())] = errDown }, outcome{1, 1, 0}},
		"list cut short": {"the listed referrers stay", func(_ *testing.T, s *store) {
			s.failures[at("referrers "+subject.String())] = failure(image.Bound, "x")
		}, outcome{2, 1, 0}},
		"list corrupt": {"a lie is no answer", func(_ *testing.T, s *store) {
			s.failures[at("referrers "+subject.String())] = failure(image.Corrupt, "x")
		}, outcome{1, 1, 0}},
		"referrer gone": {"listed and not there: any user with push access can do that", func(_ *testing.T, s *store) {
			delete(s.manifests, at(s.referrers[at("referrers "+subject.String())][0].Digest.String()))
		}, outcome{1, 0, 1}},
		"referrer down": {"listed, and no answer", func(_ *testing.T, s *store) {
			s.failures[at(s.referrers[at("referrers "+subject.String())][0].Digest.String())] = errDown
		}, outcome{1, 1, 0}},
		"blob down": {"no answer", func(_ *testing.T, s *store) {
			s.failures["blob "+image.DigestOf(messageBundle("one")).String()] = errDown
		}, outcome{1, 1, 0}},
		"blob gone": {"the registry reports it", func(_ *testing.T, s *store) { delete(s.blobs, image.DigestOf(messageBundle("one"))) }, outcome{1, 0, 1}},
		"unrelated error": {"an unknown error is a gap", func(_ *testing.T, s *store) {
			s.failures[at(sigTag(subject))] = fmt.Errorf("boom")
		}, outcome{1, 1, 0}},
		"tag holds an index": {"no manifest", func(_ *testing.T, s *store) {
			s.manifests[at(sigTag(subject))] = []byte(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
		}, outcome{1, 0, 1}},
		"tag holds noise": {"no JSON", func(_ *testing.T, s *store) { s.manifests[at(sigTag(subject))] = []byte(`{"layers":`) }, outcome{1, 0, 1}},
		"foreign referrer": {"it names another subject", func(t *testing.T, s *store) {
			s.refer(t, own, subject, bundleReferrer(s, foreign, messageBundle("two"), nil))
		}, outcome{2, 0, 1}},
		"referrer without subject": {"it names none", func(t *testing.T, s *store) {
			s.refer(t, own, subject, bundleReferrer(s, image.Digest{}, messageBundle("two"), nil))
		}, outcome{2, 0, 1}},
		"broken bundle": {"it cannot be read", func(t *testing.T, s *store) {
			s.refer(t, own, subject, bundleReferrer(s, subject, []byte(`{"mediaType":"x"}`), nil))
		}, outcome{2, 0, 1}},
		"lying size": {"more bytes than in the descriptor", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers[0].Size--
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"short size": {"fewer bytes than in the descriptor", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers[0].Size++
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"negative size": {"no descriptor", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers[0].Size = -1
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"huge": {"its size is a claim of its author", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers[0].Size = attest.MaxAttestation + 1
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"corrupt blob": {"other bytes than those of the digest, which its author did not push", func(_ *testing.T, s *store) {
			s.failures["blob "+image.DigestOf(messageBundle("one")).String()] = failure(image.Corrupt, "x")
		}, outcome{1, 1, 0}},
		"wrong size of a blob": {"not the size of its descriptor, which its author wrote", func(_ *testing.T, s *store) {
			s.failures["blob "+image.DigestOf(messageBundle("one")).String()] = byContent("x")
		}, outcome{1, 0, 1}},
		"corrupt referrer": {"the registry's own list names its digest", func(_ *testing.T, s *store) {
			s.failures[at(s.referrers[at("referrers "+subject.String())][0].Digest.String())] = failure(image.Corrupt, "x")
		}, outcome{1, 1, 0}},
		"referrer larger than listed": {"more than was reserved", func(_ *testing.T, s *store) {
			s.referrers[at("referrers "+subject.String())][0].Size = 1
		}, outcome{1, 0, 1}},
		"manifest of many layers": {"they cost memory", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers = make([]image.Descriptor, 4097)
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"notation with two layers": {"exactly one is a signature", func(t *testing.T, s *store) {
			d := notationReferrer(s, subject, "two")
			d.layers = append(d.layers, d.layers[0])
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"notation of another type": {"neither JWS nor COSE", func(t *testing.T, s *store) {
			d := notationReferrer(s, subject, "two")
			d.layers[0].MediaType = "application/pgp"
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"bundle without a bundle": {"it claims to be evidence", func(t *testing.T, s *store) {
			d := bundleReferrer(s, subject, messageBundle("two"), nil)
			d.layers = []image.Descriptor{s.blob("text/plain", []byte("a"), nil), s.blob("text/plain", []byte("b"), nil)}
			s.refer(t, own, subject, d)
		}, outcome{2, 0, 1}},
		"tag without a signature": {"it claims to be evidence", func(t *testing.T, s *store) {
			s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{s.blob("text/plain", []byte("a"), nil)}})
		}, outcome{1, 0, 1}},
		"unknown referrer": {"it does not say that it is evidence", func(t *testing.T, s *store) {
			s.refer(t, own, subject, document{subject: subject, layers: []image.Descriptor{s.blob("text/plain", []byte("a"), nil)}})
		}, outcome{2, 0, 0}},
		"unrelated referrer": {"not requested", func(t *testing.T, s *store) {
			s.refer(t, own, subject, document{artifactType: "application/vnd.example", subject: foreign})
		}, outcome{2, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{legacySignature(s, "one")}})
			s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle("one"), nil))
			row.harm(t, s)
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true})
			if got := (outcome{len(found.Evidence), len(found.Gaps), len(found.Malformed)}); got != row.want {
				t.Errorf("%s: got %+v, want %+v\ngaps %v\nmalformed %v", row.reason, got, row.want, found.Gaps, found.Malformed)
			}
		})
	}
}

func TestFindArtifactsNeedASignatureAndADocument(t *testing.T) {
	good := func(s *store) document {
		return document{artifactType: sbom, subject: subject, layers: []image.Descriptor{s.blob("application/json", []byte("{}"), nil)}}
	}
	for name, row := range map[string]struct {
		document  func(s *store) document
		sign      bool
		evidence  int
		malformed string
	}{
		"signed":     {good, true, 1, ""},
		"two layers": {func(s *store) document { d := good(s); d.layers = append(d.layers, d.layers[0]); return d }, true, 0, "exactly one layer"},
		"no JSON": {func(s *store) document {
			d := good(s)
			d.layers[0] = s.blob("text/plain", []byte("SPDX"), nil)
			return d
		}, true, 0, "no JSON document"},
		"foreign subject": {func(s *store) document { d := good(s); d.subject = foreign; return d }, true, 0, "another subject"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			digest := s.refer(t, own, subject, row.document(s))
			if row.sign {
				s.refer(t, own, digest, notationReferrer(s, digest, "one"))
			}
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Artifacts: []string{sbom}})
			if len(found.Evidence) != row.evidence || len(found.Gaps) > 0 {
				t.Errorf("found %q, gaps %v; want %d", describeAll(found.Evidence), found.Gaps, row.evidence)
			}
			if text := fmt.Sprint(found.Malformed); !strings.Contains(text, row.malformed) {
				t.Errorf("malformed %q does not say %q", text, row.malformed)
			}
		})
	}
}

// TestFindDistinguishesUnsignedFromBroken: an unsigned document, one with an unreadable signature,
// and one with signatures that could not be verified are three things.
func TestFindDistinguishesUnsignedFromBroken(t *testing.T) {
	type outcome struct{ evidence, unsigned, malformed, gaps int }
	signers := func(s *store, digest image.Digest) string { return own.String() + " referrers " + digest.String() }
	for name, row := range map[string]struct {
		reason string
		sign   func(t *testing.T, s *store, digest image.Digest)
		asked  string
		want   outcome
	}{
		"signed": {"", func(t *testing.T, s *store, digest image.Digest) {
			s.refer(t, own, digest, notationReferrer(s, digest, "one"))
		}, sbom, outcome{evidence: 1}},
		"not signed": {"nothing is wrong with it", func(*testing.T, *store, image.Digest) {}, sbom, outcome{unsigned: 1}},
		"not signed, as the registry reports by 404": {"that is an answer", func(_ *testing.T, s *store, digest image.Digest) {
			s.failures[signers(s, digest)] = failure(image.NotFound, "referrers")
		}, sbom, outcome{unsigned: 1}},
		"not signed, with something else beside it": {"no signature", func(t *testing.T, s *store, digest image.Digest) {
			s.refer(t, own, digest, document{artifactType: "application/vnd.example", subject: digest})
		}, sbom, outcome{unsigned: 1}},
		"could not be read": {"", func(_ *testing.T, s *store, digest image.Digest) {
			s.failures[signers(s, digest)] = failure(image.Unavailable, "referrers")
		}, sbom, outcome{gaps: 1}},
		"a broken signature": {"two layers", func(t *testing.T, s *store, digest image.Digest) {
			d := notationReferrer(s, digest, "one")
			d.layers = append(d.layers, d.layers[0])
			s.refer(t, own, digest, d)
		}, sbom, outcome{malformed: 1}},
		"not asked for": {"another type", func(*testing.T, *store, image.Digest) {}, "application/vnd.other", outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			digest := s.refer(t, own, subject, document{artifactType: sbom, subject: subject, layers: []image.Descriptor{s.blob("application/json", []byte("{}"), nil)}})
			row.sign(t, s, digest)
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Artifacts: []string{row.asked}})
			if got := (outcome{len(found.Evidence), len(found.Unsigned), len(found.Malformed), len(found.Gaps)}); got != row.want {
				t.Errorf("%s: got %+v, want %+v: %+v", row.reason, got, row.want, found)
			}
			for _, e := range found.Unsigned {
				if e.PredicateType != sbom || e.Origin.Manifest != digest {
					t.Errorf("the unsigned document is %+v", e)
				}
			}
		})
	}
}

func TestFindBoundsAreGapsAndKeepEvidence(t *testing.T) {
	for name, row := range map[string]struct {
		build    func(t *testing.T, s *store)
		want     attest.Want
		bound    string
		evidence int
	}{
		"referrers": {func(t *testing.T, s *store) {
			for i := range attest.MaxOpenedReferrers + 1 {
				s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle(fmt.Sprint(i)), nil))
			}
		}, attest.Want{Signatures: true}, "MaxOpenedReferrers", attest.MaxOpenedReferrers},
		"layers": {func(t *testing.T, s *store) {
			var layers []image.Descriptor
			for i := range attest.MaxLayers + 1 {
				layers = append(layers, legacySignature(s, fmt.Sprint(i)))
			}
			s.tag(t, own, sigTag(subject), document{layers: layers})
		}, attest.Want{Signatures: true}, "MaxLayers", attest.MaxLayers},
		"manifests": {func(t *testing.T, s *store) {
			s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{legacySignature(s, "one")}})
			for i := range 3 { // of which two are within the bound, and no manifests
				b := append([]byte{'x', byte(i)}, make([]byte, attest.MaxManifests*2/5)...)
				s.manifests[own.String()+" "+image.DigestOf(b).String()] = b
				key := own.String() + " referrers " + subject.String()
				s.referrers[key] = append(s.referrers[key], image.Descriptor{Digest: image.DigestOf(b), Size: int64(len(b)), ArtifactType: attest.ArtifactTypeNotation})
			}
		}, attest.Want{Signatures: true}, "MaxManifests", 1},
		"documents": {func(t *testing.T, s *store) {
			for i := range 5 {
				d := document{artifactType: attest.MediaTypeInToto, subject: subject}
				for j := range attest.MaxLayers {
					d.layers = append(d.layers, legacyAttestation(s, slsa, fmt.Sprint(i, j)))
				}
				s.refer(t, own, subject, d)
			}
		}, attest.Want{Predicates: []string{slsa}}, "MaxDocuments", attest.MaxDocuments},
		"total": {func(t *testing.T, s *store) {
			d := document{artifactType: attest.MediaTypeInToto, subject: subject, layers: []image.Descriptor{legacyAttestation(s, slsa, "small")}}
			for i := range 4 { // of these four, three are within the bound
				d.layers = append(d.layers, s.blob(attest.MediaTypeDSSE, append(make([]byte, attest.MaxAttestation-1), byte(i)), nil))
			}
			s.refer(t, own, subject, d)
		}, attest.Want{Predicates: []string{slsa}}, "MaxTotal", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			row.build(t, s)
			found := attest.Find(t.Context(), s, pinned(t), row.want)
			if len(found.Evidence) != row.evidence || len(found.Gaps) != 1 {
				t.Fatalf("%d evidence, gaps %v, malformed %v; want %d and one gap", len(found.Evidence), found.Gaps, found.Malformed, row.evidence)
			}
			if gap := found.Gaps[0]; image.KindOf(gap) != image.Bound || !strings.Contains(gap.Error(), row.bound) {
				t.Errorf("gap %q is no bound named %s", gap, row.bound)
			}
		})
	}
}

// TestFindReferrersBeyondABound: what one push adds is malformed evidence, and no gap that could keep
// a condition on the latest statement from being evaluated.
func TestFindReferrersBeyondABound(t *testing.T) {
	s := newStore()
	d := document{artifactType: attest.MediaTypeInToto, subject: subject}
	for i := range attest.MaxLayers + 1 {
		d.layers = append(d.layers, legacyAttestation(s, slsa, fmt.Sprint(i)))
	}
	s.refer(t, own, subject, d)
	found := attest.Find(t.Context(), s, pinned(t), attest.Want{Predicates: []string{slsa}})
	if len(found.Evidence) != attest.MaxLayers || len(found.Gaps) != 0 || len(found.Malformed) != 1 || !strings.Contains(found.Malformed[0].Error(), "MaxLayers") {
		t.Errorf("%d evidence, gaps %v, malformed %v", len(found.Evidence), found.Gaps, found.Malformed)
	}
}

func TestFindIsNotCrowdedOut(t *testing.T) {
	s := newStore()
	for i := range 3 * attest.MaxOpenedReferrers { // of types that are not asked for, or of another one that is
		b := dsseBundle(statement(spdx, subject, fmt.Sprint(i)))
		s.refer(t, own, subject, bundleReferrer(s, subject, b, map[string]string{
			"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": spdx,
		}))
		s.refer(t, own, subject, document{artifactType: fmt.Sprintf("application/vnd.example.%d", i), subject: subject})
	}
	s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle("good"), nil))
	for name, want := range map[string]attest.Want{
		"signature":          {Signatures: true},
		"signature and SBOM": {Signatures: true, Predicates: []string{spdx}},
	} {
		t.Run(name, func(t *testing.T) {
			found := attest.Find(t.Context(), s, pinned(t), want)
			if !slices.Contains(describeAll(found.Evidence), "bundle signature") {
				t.Errorf("the signature is not among %d evidence; gaps %v", len(found.Evidence), found.Gaps)
			}
			if len(want.Predicates) == 0 && len(found.Gaps) > 0 {
				t.Errorf("gaps %v, want none", found.Gaps)
			}
		})
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := attest.Find(ctx, everyEvidence(t), pinned(t), attest.Want{Signatures: true})
	if len(found.Evidence) > 0 || len(found.Gaps) == 0 {
		t.Errorf("found %q, gaps %v; want gaps only", describeAll(found.Evidence), found.Gaps)
	}
}

func TestFindSkipsTagsOfLongDigests(t *testing.T) {
	long := image.MustParseDigest("sha512:" + strings.Repeat("ab", 64))
	p, err := image.MustParse("registry.example/app").Pin(image.Descriptor{Digest: long})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore()
	s.refer(t, own, long, bundleReferrer(s, long, messageBundle("one"), nil))
	found := attest.Find(t.Context(), s, p, attest.Want{Signatures: true})
	if len(found.Evidence) != 1 || len(found.Gaps) > 0 {
		t.Errorf("found %q, gaps %v; want the bundle", describeAll(found.Evidence), found.Gaps)
	}
}

// FuzzFind serves fuzzed manifests and documents: whatever they are, Find must
// not panic, and evidence must be asked for and say where it is from.
func FuzzFind(f *testing.F) {
	s := everyEvidence(f)
	for _, b := range slices.Concat(slices.Collect(maps.Values(s.manifests)), slices.Collect(maps.Values(s.blobs))) {
		f.Add(b, b, attest.MediaTypeBundle)
	}
	f.Add([]byte(`{"layers":null,"subject":null}`), []byte(`{}`), "")
	f.Fuzz(func(t *testing.T, manifest, blob []byte, artifactType string) {
		s := newStore()
		digest := image.DigestOf(manifest)
		s.manifests[own.String()+" "+sigTag(subject)] = manifest
		s.manifests[own.String()+" "+attTag(subject)] = manifest
		s.manifests[own.String()+" "+digest.String()] = manifest
		s.blobs[image.DigestOf(blob)] = blob
		list := []image.Descriptor{{Digest: digest, ArtifactType: artifactType}}
		s.referrers[own.String()+" referrers "+subject.String()] = list
		s.referrers[own.String()+" referrers "+digest.String()] = list
		wrapped := document{artifactType: artifactType, subject: subject, layers: []image.Descriptor{s.blob(artifactType, blob, nil)}}
		s.refer(t, own, subject, wrapped)
		want := attest.Want{Signatures: true, Predicates: []string{slsa}, Artifacts: []string{sbom}}
		for _, e := range attest.Find(t.Context(), s, pinned(t), want).Evidence {
			if e.Origin.Manifest.IsZero() || e.Role == attest.Attestation && e.PredicateType != slsa && e.PredicateType != sbom {
				t.Errorf("evidence that was not requested: %s", describe(e))
			}
		}
	})
}

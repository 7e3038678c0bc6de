package attest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// TestFindIsNotStarved: a user with push access writes referrers' sizes and layers, and must not
// keep a good signature from being read.
func TestFindIsNotStarved(t *testing.T) {
	claim := func(s *store, salt string, size int64) image.Descriptor {
		layer := s.blob(attest.MediaTypeBundle, []byte(salt), nil)
		layer.Size = size
		s.failures["blob "+layer.Digest.String()] = byContent("the size is a lie")
		return layer
	}
	for name, row := range map[string]struct {
		reason string
		push   func(t *testing.T, s *store)
	}{
		"claims of great sizes": {"a claim is no byte that was received", func(t *testing.T, s *store) {
			for i := range 100 {
				s.refer(t, own, subject, document{artifactType: attest.MediaTypeBundle, subject: subject,
					layers: []image.Descriptor{claim(s, fmt.Sprint(i), attest.MaxAttestation)}})
			}
		}},
		"referrers of many layers": {"the first layer of each comes before the second of any", func(t *testing.T, s *store) {
			for i := range 8 {
				d := document{artifactType: attest.MediaTypeBundle, subject: subject}
				for j := range attest.MaxLayers {
					d.layers = append(d.layers, claim(s, fmt.Sprint(i, j), 1))
				}
				s.refer(t, own, subject, d)
			}
		}},
		"large manifests": {"small ones come first", func(t *testing.T, s *store) {
			for i := range 10 {
				pad := make([]byte, attest.MaxManifests/8)
				s.refer(t, own, subject, document{artifactType: attest.MediaTypeBundle, subject: subject,
					annotations: map[string]string{"pad": fmt.Sprintf("%x%d", pad[:len(pad)/2], i)}})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			row.push(t, s)
			good := bundleReferrer(s, subject, dsseBundle(statement(slsa, subject, "{}")), nil)
			s.refer(t, own, subject, good)
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Predicates: []string{slsa}})
			if !slices.Equal(describeAll(found.Evidence), []string{"bundle attestation " + slsa}) {
				t.Errorf("%s: found %q", row.reason, describeAll(found.Evidence))
			}
			if name == "claims of great sizes" && len(found.Gaps) > 0 {
				t.Errorf("gaps %v, want none: all were looked at", found.Gaps)
			}
		})
	}
}

func TestStatementBounds(t *testing.T) {
	for name, row := range map[string]struct {
		members int
		err     bool
	}{"at the bound": {attest.MaxMembers, false}, "past it": {attest.MaxMembers + 1, true}} {
		b := []byte("{")
		for i := range row.members {
			b = fmt.Appendf(b, `"%d":1,`, i)
		}
		b[len(b)-1] = '}'
		if _, err := attest.ParseStatement(statement(slsa, subject, string(b))); (err != nil) != row.err {
			t.Errorf("%s: %v", name, err)
		}
		twice := append(b[:len(b)-1], `,"20":1}`...)
		if _, err := attest.ParseStatement(statement(slsa, subject, string(twice))); err == nil {
			t.Errorf("%s: a key of many that stands twice was taken", name)
		}
	}
}

package attest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// slow is a store with slower answers about one kind of repository.
type slow struct {
	*store
	referrers, tags time.Duration
}

func (s slow) Referrers(ctx context.Context, r image.Repository, d image.Digest, types []string) ([]image.Descriptor, error) {
	time.Sleep(s.referrers) //nolint:forbidigo // inside a bubble of testing/synctest
	return s.store.Referrers(ctx, r, d, types)
}

func (s slow) Manifest(ctx context.Context, r image.Repository, reference string) (image.Descriptor, []byte, error) {
	if reference == sigTag(subject) {
		time.Sleep(s.tags) //nolint:forbidigo // as above
	}
	return s.store.Manifest(ctx, r, reference)
}

// TestFindDoesNotAddUpRounds: a document is requested as soon as its manifest is there, and a
// manifest as soon as its list is, whatever else is still to come. Each is requested once.
func TestFindDoesNotAddUpRounds(t *testing.T) {
	const round = time.Second
	for name, row := range map[string]struct {
		reason          string
		referrers, tags time.Duration // of more pages, or of a slow answer
		rounds          int
	}{
		"nothing slow":     {"list, manifest, bundle; the tag's two beside them", 0, 0, 3},
		"a list of pages":  {"three more pages, manifest, bundle; the tag's two beside them", 3 * round, 0, 6},
		"a slow tag":       {"the tag and its payload take four; the bundle's three beside them", 0, 2 * round, 4},
		"a very slow tag":  {"the tag's five and its payload; the bundle's three beside them", 0, 4 * round, 6},
		"both are slow":    {"the list's two, manifest, bundle; the tag's three and its payload", round, 2 * round, 4},
		"a slow first one": {"the list's three, manifest, bundle; the tag's two and its payload", 2 * round, round, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.tag(t, own, sigTag(subject), document{layers: []image.Descriptor{legacySignature(s, "one"), legacySignature(s, "two")}})
			s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle("three"), nil))
			s.delay = round
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				found := attest.Find(t.Context(), slow{s, row.referrers, row.tags}, pinned(t), attest.Want{Signatures: true})
				if got := int(time.Since(start) / round); got != row.rounds || len(found.Evidence) != 3 {
					t.Errorf("%s: %d rounds with %d evidence, want %d with 3", row.reason, got, len(found.Evidence), row.rounds)
				}
				calls := slices.Sorted(slices.Values(s.calls))
				if got := len(slices.Compact(slices.Clone(calls))); got != len(calls) || got != 6 {
					t.Errorf("%d requests of which %d differ, want 6: %q", len(calls), got, calls)
				}
			})
		})
	}
}

// TestEarlyRequestsDecideNothing: the evidence is the same for every order of answers, with more
// documents than are requested early, and with failures and wrong bytes.
func TestEarlyRequestsDecideNothing(t *testing.T) {
	s := newStore()
	var layers []image.Descriptor
	for i := range 100 {
		layers = append(layers, legacySignature(s, fmt.Sprint(i)))
		s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle(fmt.Sprint("b", i)), nil))
	}
	s.failures["blob "+layers[3].Digest.String()] = failure(image.Unavailable, "a payload")
	s.failures["blob "+layers[5].Digest.String()] = failure(image.NotFound, "a payload")
	lie := layers[7]
	lie.Size--
	layers = append(layers, lie)
	s.tag(t, own, sigTag(subject), document{layers: layers})
	var first attest.Found
	for i, order := range []slow{{s, 0, 0}, {s, time.Minute, 0}, {s, 0, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			order.delay = time.Second
			found := attest.Find(t.Context(), order, pinned(t), attest.Want{Signatures: true})
			if i == 0 {
				first = found
				if len(found.Evidence) != 198 || len(found.Gaps) != 1 || len(found.Malformed) != 2 {
					t.Fatalf("%d evidence, gaps %v, malformed %v", len(found.Evidence), found.Gaps, found.Malformed)
				}
			}
			if got, want := fmt.Sprint(found), fmt.Sprint(first); got != want {
				t.Errorf("order %d: another result", i)
			}
		})
	}
}

// TestFindLeavesNothingBehind: no request goes on after the result, also with an ended context
// and with early requests past a bound, which the bubble would report.
func TestFindLeavesNothingBehind(t *testing.T) {
	s := newStore()
	for i := range 40 {
		s.refer(t, own, subject, bundleReferrer(s, subject, messageBundle(fmt.Sprint(i)), nil))
	}
	s.delay = time.Second
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		found := attest.Find(ctx, s, pinned(t), attest.Want{Signatures: true})
		if len(found.Evidence) != 0 || len(found.Gaps) == 0 {
			t.Errorf("%d evidence, gaps %v; want gaps alone", len(found.Evidence), found.Gaps)
		}
	})
}

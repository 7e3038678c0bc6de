package redirect_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// TestResolve: the first that answers counts, and the result is "not found" only if all return it.
func TestResolve(t *testing.T) {
	for _, test := range []struct {
		reason   string
		targets  []*target
		resting  string
		digest   image.Digest
		kind     image.Kind
		states   string
		requests string
	}{
		{"the first", []*target{{tag: wanted}, {tag: stale}}, "", wanted, "", "chosen not-asked", "m1.example/app:v1"},
		{"the second", []*target{{}, {tag: stale}}, "", stale, "", "missing chosen", "m1.example/app:v1 m2.example/app:v1"},
		{"the second, since the first fails", []*target{{err: failure(image.Unavailable)}, {tag: stale}}, "", stale, "", "failed chosen", "m1.example/app:v1 m2.example/app:v1"},
		{"the second, since the first rests", []*target{{tag: wanted}, {tag: stale}}, "m1.example", stale, "", "resting chosen", "m2.example/app:v1"},
		{"none has it", []*target{{}, {}}, "", image.Digest{}, image.NotFound, "missing missing", "m1.example/app:v1 m2.example/app:v1"},
		{"one has it not, the other fails", []*target{{}, {err: failure(image.Refused)}}, "", image.Digest{}, image.Unavailable, "missing failed", "m1.example/app:v1 m2.example/app:v1"},
		{"one has it not, the other rests", []*target{{}, {}}, "m2.example", image.Digest{}, image.Unavailable, "missing resting", "m1.example/app:v1"},
		{"one lies", []*target{{lies: true}}, "", image.Digest{}, image.Unavailable, "failed", "m1.example/app:v1"},
		{"one panics", []*target{{panics: "resolve"}, {tag: wanted}}, "", wanted, "", "failed chosen", "m1.example/app:v1 m2.example/app:v1"},
		{"one cannot be opened", []*target{{panics: "open"}}, "", image.Digest{}, image.Unavailable, "failed", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			h := &recordingHealth{resting: map[string]string{test.resting: "silence"}}
			bubble(t, test.targets, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				for name, change := range map[string]func(*mirror.Route){"verified": byTarget, "always": func(r *mirror.Route) { byTarget(r); always(r) }} {
					q := f.question(":v1", change)
					got, attempts, err := c.Resolve(t.Context(), q, c.Begin(t.Context(), q))
					if got.Digest != test.digest || image.KindOf(err) != test.kind {
						t.Errorf("%s: %s, %v", name, got.Digest, err)
					}
					want(t, "states", states(attempts), test.states)
					if name == "verified" || test.kind == image.Unavailable {
						f.requests() // the other asks from memory
					}
					if err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), attempts[len(attempts)-1].Target.String())) {
						t.Error(err)
					}
				}
			}, redirect.WithHealth(h))
			bubble(t, test.targets, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				_, _, _ = c.Resolve(t.Context(), f.question(":v1", byTarget), nil)
				want(t, "requests", f.requests(), test.requests)
			}, redirect.WithHealth(h))
		})
	}
}

// TestResolvedIsChosen without asking again, failures included.
func TestResolvedIsChosen(t *testing.T) {
	bubble(t, []*target{{err: failure(image.Refused)}, {tag: stale}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1", byTarget)
		early := c.Begin(t.Context(), q)
		start := time.Now()
		got, _, err := c.Resolve(t.Context(), q, early)
		if err != nil {
			t.Fatal(err)
		}
		choice := c.Choose(t.Context(), q, early, got.Digest)
		if choice.Target.Digest() != stale || time.Since(start) != 2*trip {
			t.Errorf("%+v after %s", choice, time.Since(start))
		}
		want(t, "requests", f.requests(), "m1.example/app:v1 m2.example/app:v1")
		if _, _, err := c.Resolve(t.Context(), q, early); err != nil || f.requests() != "" {
			t.Errorf("asked again, or %v", err)
		}
	})
}

// TestADigestNeedsNoResolving: it sends no request.
func TestADigestNeedsNoResolving(t *testing.T) {
	bubble(t, []*target{{hangs: true}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		got, attempts, err := c.Resolve(t.Context(), f.question("@"+wanted.String(), byTarget), nil)
		if err != nil || got.Digest != wanted || f.requests() != "" {
			t.Errorf("%s, %v", got.Digest, err)
		}
		want(t, "states", states(attempts), "not-asked")
	})
}

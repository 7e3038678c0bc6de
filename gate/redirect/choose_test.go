package redirect_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

func failure(kind image.Kind) error { return &image.Error{Kind: kind, Op: "resolve", On: "test"} }

// TestChoose: the requests to the candidates, their order, and the chosen one.
func TestChoose(t *testing.T) {
	both := ":v1@" + wanted.String()
	for _, test := range []struct {
		reason    string
		reference string
		targets   []*target
		change    func(*mirror.Route)
		chosen    string
		states    string
		requests  string
	}{
		{
			"its tag resolves to the digest", ":v1", []*target{{tag: wanted}}, nil,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1",
		},
		{
			"its tag lags, but it has the digest", ":v1", []*target{{tag: stale, has: []image.Digest{wanted}}}, nil,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"its tag lags, and it has not the digest", ":v1", []*target{{tag: stale}}, nil,
			"", "differs", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"it has no tag, but the digest", ":v1", []*target{{has: []image.Digest{wanted}}}, nil,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"it has nothing", ":v1", []*target{{}}, nil,
			"", "missing", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"by digest", "@" + wanted.String(), []*target{{has: []image.Digest{wanted}}}, nil,
			"m1.example/app@wanted", "chosen", "m1.example/app@wanted",
		},
		{
			"by tag and digest: the digest counts", both, []*target{{tag: stale, has: []image.Digest{wanted}}}, nil,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app@wanted",
		},
		{
			"the second", ":v1", []*target{{}, {tag: wanted}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "missing chosen not-asked", "m1.example/app:v1 m1.example/app@wanted m2.example/app:v1",
		},
		{
			"the first of two", ":v1", []*target{{tag: wanted}, {tag: wanted}}, nil,
			"m1.example/app:v1@wanted", "chosen not-asked", "m1.example/app:v1",
		},
		{
			"the first refuses", ":v1", []*target{{err: failure(image.Refused)}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "failed chosen", "m1.example/app:v1 m2.example/app:v1",
		},
		{
			"no response", ":v1", []*target{{err: failure(image.Unavailable)}, {err: failure(image.Corrupt)}}, nil,
			"", "failed failed", "m1.example/app:v1 m2.example/app:v1",
		},
		{
			"one cannot be opened", ":v1", []*target{{unopened: errors.New("no secret")}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "failed chosen", "m2.example/app:v1",
		},
		{
			"it fills by tags, and has the digest already", both, []*target{{tag: wanted}}, filling,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1",
		},
		{
			"it fills by tags, and its tag lags", both, []*target{{tag: stale, has: []image.Digest{wanted}}}, filling,
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"it fills by tags, and there is none", "@" + wanted.String(), []*target{{has: []image.Digest{wanted}}}, filling,
			"m1.example/app@wanted", "chosen", "m1.example/app@wanted",
		},
		{
			"always", ":v1", []*target{{err: failure(image.Unavailable)}, {tag: wanted}}, always,
			"m1.example/app:v1@wanted", "chosen not-asked", "",
		},
		{
			"always, by digest", both, []*target{{}}, always,
			"m1.example/app:v1@wanted", "chosen", "",
		},
		{
			"always, and it fills by tags", both, []*target{{tag: stale}}, func(r *mirror.Route) { always(r); filling(r) },
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1",
		},
		{
			"always, and filling fails", ":v1", []*target{{err: failure(image.Unavailable)}}, func(r *mirror.Route) { always(r); filling(r) },
			"m1.example/app:v1@wanted", "chosen", "m1.example/app:v1",
		},
		{
			"always, and it cannot be opened", ":v1", []*target{{unopened: errors.New("no secret")}}, func(r *mirror.Route) { always(r); filling(r) },
			"m1.example/app:v1@wanted", "chosen", "",
		},
		{
			"another digest for the same question", ":v1", []*target{{lies: true, digest: stale}}, nil,
			"", "failed", "m1.example/app:v1 m1.example/app@wanted",
		},
		{
			"no digest at all", ":v1", []*target{{lies: true}}, nil,
			"", "failed", "m1.example/app:v1",
		},
		{
			"a panic when asked", ":v1", []*target{{panics: "resolve"}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "failed chosen", "m1.example/app:v1 m2.example/app:v1",
		},
		{
			"a panic when opened", ":v1", []*target{{panics: "open"}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "failed chosen", "m2.example/app:v1",
		},
		{
			"a panic about its scope", ":v1", []*target{{panics: "scope"}, {tag: wanted}}, nil,
			"m2.example/app:v1@wanted", "failed chosen", "m2.example/app:v1",
		},
		{
			"the reference names another digest than was decided about", "@" + stale.String(), []*target{{has: []image.Digest{wanted}}}, nil,
			"", "failed", "",
		},
		{
			"the same, always", "@" + stale.String(), []*target{{has: []image.Digest{wanted}}}, always,
			"", "failed", "",
		},
	} {
		for name, early := range map[string]bool{"alone": false, "begun early": true} {
			t.Run(test.reason+", "+name, func(t *testing.T) {
				if early && test.requests == "" && test.chosen == "" {
					return // Begin is not called with a digest that contradicts itself
				}
				bubble(t, test.targets, func(t *testing.T, c *redirect.Chooser, f *fleet) {
					var change []func(*mirror.Route)
					if test.change != nil {
						change = append(change, test.change)
					}
					q := f.question(test.reference, change...)
					var begun *redirect.Early
					if early {
						begun = c.Begin(t.Context(), q)
					}
					choice := c.Choose(t.Context(), q, begun, wanted)
					want(t, "chosen", short(choice.Target), test.chosen)
					want(t, "states", states(choice.Attempts), test.states)
					want(t, "requests", f.requests(), test.requests)
					for i, a := range choice.Attempts {
						if a.Target != q.Route.Candidates[i].Ref {
							t.Errorf("attempt %d is of %s", i, a.Target)
						}
						if fine := a.State == redirect.Chosen || a.State == redirect.NotAsked; fine != (a.Err == nil) {
							t.Errorf("%s: %v", a.State, a.Err)
						}
					}
				})
			})
		}
	}
}

func short(p image.Pinned) string {
	if p.IsZero() {
		return ""
	}
	s := p.Repository().String()
	if tag := p.Ref().Tag(); tag != "" {
		s += ":" + tag
	}
	if p.Digest() == wanted {
		return s + "@wanted"
	}
	return s + "@" + p.Digest().String()
}

// TestTagsAreReported: both digests are known where a mirror lags.
func TestTagsAreReported(t *testing.T) {
	for _, lagging := range []*target{{tag: stale}, {tag: stale, has: []image.Digest{wanted}}} {
		bubble(t, []*target{lagging}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
			q := f.question(":v1")
			for range 2 { // by requests, and from memory
				choice := c.Choose(t.Context(), q, nil, wanted)
				if choice.Attempts[0].Tag != stale {
					t.Errorf("%+v", choice.Attempts)
				}
			}
		})
	}
}

// TestRounds: redirecting adds at most one round trip to a cold proof.
func TestRounds(t *testing.T) {
	for _, test := range []struct {
		reason    string
		reference string
		target    *target
		took      time.Duration // the source's own round included
	}{
		{"the tag agrees", ":v1", &target{tag: wanted}, trip},
		{"the tag lags", ":v1", &target{tag: stale, has: []image.Digest{wanted}}, 2 * trip},
		{"by digest", "@" + wanted.String(), &target{has: []image.Digest{wanted}}, trip},
	} {
		t.Run(test.reason, func(t *testing.T) {
			bubble(t, []*target{test.target}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				q := f.question(test.reference)
				start := time.Now()
				early := c.Begin(t.Context(), q)
				if time.Since(start) != 0 {
					t.Error("Begin waited")
				}
				time.Sleep(trip) //nolint:forbidigo // of the bubble's clock: the source is asked
				choice := c.Choose(t.Context(), q, early, wanted)
				if took := time.Since(start); choice.Target.IsZero() || took != test.took {
					t.Errorf("%s after %s, want %s", states(choice.Attempts), took, test.took)
				}
				if choice.Attempts[0].Took != test.took {
					t.Errorf("it took %s", choice.Attempts[0].Took)
				}
			})
		})
	}
}

// TestMemory: a repeated call sends no request, each answer for its own time.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		reason string
		target *target
		change func(*mirror.Route)
		after  time.Duration
		again  string // requests
		state  redirect.State
	}{
		{"present", &target{tag: wanted}, nil, 5*time.Minute - time.Second, "", redirect.Chosen},
		{"present too long ago", &target{tag: wanted}, nil, 5 * time.Minute, "m1.example/app:v1", redirect.Chosen},
		{"filled", &target{tag: wanted}, filling, 5*time.Minute - time.Second, "", redirect.Chosen},
		{"missing", &target{}, nil, 9 * time.Second, "", redirect.Missing},
		{"missing too long ago", &target{}, nil, 11 * time.Second, "m1.example/app:v1 m1.example/app@wanted", redirect.Missing},
		{"another tag", &target{tag: stale}, nil, 9 * time.Second, "", redirect.Differs},
		{"another tag, missing too long ago", &target{tag: stale}, nil, 29 * time.Second, "m1.example/app@wanted", redirect.Differs},
		{"another tag too long ago", &target{tag: stale}, nil, 30 * time.Second, "m1.example/app:v1 m1.example/app@wanted", redirect.Differs},
		{"a failure", &target{err: failure(image.Refused)}, nil, 0, "m1.example/app:v1", redirect.Failed},
		{"a lie", &target{lies: true}, nil, 0, "m1.example/app:v1", redirect.Failed},
		{"always, filled", &target{tag: stale}, func(r *mirror.Route) { always(r); filling(r) }, 29 * time.Second, "", redirect.Chosen},
		{"always, filled too long ago", &target{tag: stale}, func(r *mirror.Route) { always(r); filling(r) }, 30 * time.Second, "m1.example/app:v1", redirect.Chosen},
		{"always", &target{}, always, time.Hour, "", redirect.Chosen},
	} {
		t.Run(test.reason, func(t *testing.T) {
			bubble(t, []*target{test.target}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				var change []func(*mirror.Route)
				if test.change != nil {
					change = append(change, test.change)
				}
				q := f.question(":v1", change...)
				_, known := c.Remembered(t.Context(), q, wanted)
				if asksNobody := test.reason == "always"; known != asksNobody {
					t.Errorf("cached before the first request: %t", known)
				}
				first := c.Choose(t.Context(), q, nil, wanted)
				f.requests()
				time.Sleep(test.after) //nolint:forbidigo // of the bubble's clock
				choice, known := c.Remembered(t.Context(), q, wanted)
				if f.requests() != "" || known != (test.again == "") {
					t.Errorf("remembered: %t", known)
				}
				if known && (choice.Target.String() != first.Target.String() || choice.Attempts[0].State != test.state || choice.Attempts[0].Took != 0) {
					t.Errorf("remembered %+v", choice)
				}
				choice = c.Choose(t.Context(), q, nil, wanted)
				want(t, "states", states(choice.Attempts), string(test.state))
			})
		})
	}
}

// TestWarmAsksNothing: neither request nor goroutine.
func TestWarmAsksNothing(t *testing.T) {
	for _, reference := range []string{":v1", "@" + wanted.String(), ":v1@" + wanted.String()} {
		bubble(t, []*target{{tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
			q := f.question(reference)
			c.Choose(t.Context(), q, c.Begin(t.Context(), q), wanted)
			f.requests()
			if early := c.Begin(t.Context(), q); early != nil {
				t.Error("Begin asks")
			}
			start := time.Now()
			if choice := c.Choose(t.Context(), q, nil, wanted); choice.Target.IsZero() || time.Since(start) != 0 {
				t.Errorf("%+v", choice)
			}
			want(t, "requests", f.requests(), "")
		})
	}
}

// TestWarmFillAsksNothing: an image that is known to exist need not be filled.
func TestWarmFillAsksNothing(t *testing.T) {
	bubble(t, []*target{{tag: stale, has: []image.Digest{wanted}}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1@"+wanted.String(), filling)
		c.Choose(t.Context(), q, c.Begin(t.Context(), q), wanted)
		want(t, "requests", f.requests(), "m1.example/app:v1 m1.example/app@wanted")
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock: the tag is forgotten
		if early := c.Begin(t.Context(), q); early != nil {
			t.Error("Begin asks")
		}
		want(t, "states", states(c.Choose(t.Context(), q, nil, wanted).Attempts), "chosen")
		want(t, "requests", f.requests(), "")
	})
}

// TestMemoryIsOfOneScope: cached results of another scope are neither returned nor used for a choice.
func TestMemoryIsOfOneScope(t *testing.T) {
	bubble(t, []*target{{tag: wanted, scope: "one"}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		c.Choose(t.Context(), q, nil, wanted)
		f.targets["m1.example/app"].scope = "two"
		if _, known := c.Remembered(t.Context(), q, wanted); known {
			t.Error("another scope's answer is remembered")
		}
		f.targets["m1.example/app"].err = failure(image.Refused)
		if choice := c.Choose(t.Context(), q, nil, wanted); choice.Attempts[0].State != redirect.Failed {
			t.Errorf("%s", states(choice.Attempts))
		}
	})
}

// TestFlight: concurrent callers share a request.
func TestFlight(t *testing.T) {
	bubble(t, []*target{{tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		done := make(chan redirect.Choice)
		for range 20 {
			go func() { done <- c.Choose(t.Context(), q, c.Begin(t.Context(), q), wanted) }()
		}
		for range 20 {
			if choice := <-done; choice.Target.IsZero() {
				t.Errorf("%+v", choice)
			}
		}
		want(t, "requests", f.requests(), "m1.example/app:v1")
	})
}

// TestNothingToChooseFrom: a question without route or candidates has no answer.
func TestNothingToChooseFrom(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		for _, q := range []redirect.Request{{}, f.question(":v1"), f.question(":v1", always)} {
			if early := c.Begin(t.Context(), q); early != nil {
				t.Error("Begin asks")
			}
			if choice := c.Choose(t.Context(), q, nil, wanted); !choice.Target.IsZero() || len(choice.Attempts) != 0 {
				t.Errorf("%+v", choice)
			}
			if _, known := c.Remembered(t.Context(), q, wanted); !known {
				t.Error("memory should be asked for more")
			}
			if _, _, err := c.Resolve(t.Context(), q, nil); image.KindOf(err) != image.Unavailable {
				t.Error(err)
			}
		}
	})
}

// TestAnotherQuestionsEarlyAnswer is not taken for this one's.
func TestAnotherQuestionsEarlyAnswer(t *testing.T) {
	bubble(t, []*target{{tag: stale, has: []image.Digest{wanted}}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		early := c.Begin(t.Context(), f.question(":v0"))
		synctest.Wait()
		choice := c.Choose(t.Context(), f.question("@"+wanted.String()), early, wanted)
		want(t, "states", states(choice.Attempts), "chosen")
		want(t, "requests", f.requests(), "m1.example/app:v0 m1.example/app@wanted")
	})
}

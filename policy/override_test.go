package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
	"github.com/quaymaster/quaymaster/verify"
)

var overrideTime = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func digestOf(n int) image.Digest { return image.DigestOf([]byte{byte(n)}) }

func overriding(t testing.TB, list ...*policy.Override) *policy.Set {
	t.Helper()
	set, err := policy.NewSet()
	if err == nil {
		set, err = set.WithOverrides(list...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSetRefusesOverrides(t *testing.T) {
	good := policy.Override{Name: "a", Hash: "1", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime, Repositories: []string{"*"}}
	for _, c := range []struct {
		reason string
		change func(*policy.Override)
	}{
		{"no name", func(o *policy.Override) { o.Name = "" }},
		{"no effect", func(o *policy.Override) { o.Effect = "" }},
		{"no reason", func(o *policy.Override) { o.Reason = "" }},
		{"no end", func(o *policy.Override) { o.Expires = time.Time{} }},
		{"no image", func(o *policy.Override) { o.Repositories = nil }},
		{"a broken Allow", func(o *policy.Override) { o.Effect, o.Broken = policy.OverrideAllow, fmt.Errorf("broken") }},
		{"a signer to allow whom nobody can prove", func(o *policy.Override) {
			o.Effect, o.Signers = policy.OverrideAllow, []policy.OverrideSigner{{KeyFingerprint: "a"}}
		}},
	} {
		wrong := good
		c.change(&wrong)
		set, err := policy.NewSet()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.WithOverrides(&wrong); err == nil {
			t.Errorf("%s is taken", c.reason)
		}
	}
	set := overriding(t, &good)
	if _, err := set.WithOverrides(&good, &good); err == nil || !strings.Contains(err.Error(), "defined twice") {
		t.Errorf("two with one name: %v", err)
	}
}

func TestOverridesAreInTheHash(t *testing.T) {
	a := &policy.Override{Name: "a", Hash: "1", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime, Repositories: []string{"*"}}
	b := &policy.Override{Name: "b", Hash: "2", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime, Repositories: []string{"*"}}
	changed := *a
	changed.Hash = "3"
	e := &policy.Exception{Name: "e", Hash: "4", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"*"}}}}
	with := func(set *policy.Set, exceptions ...*policy.Exception) *policy.Set {
		next, err := set.With(exceptions...)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	none := overriding(t)
	seen := map[string]string{}
	for name, set := range map[string]*policy.Set{
		"none": none, "a": overriding(t, a), "a, changed": overriding(t, &changed), "b": overriding(t, b), "both": overriding(t, a, b), "a and an exception": with(overriding(t, a), e),
	} {
		if other, taken := seen[set.Hash()]; taken {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[set.Hash()] = name
	}
	if overriding(t, a, b).Hash() != overriding(t, b, a).Hash() {
		t.Error("the order matters")
	}
	empty, err := overriding(t, a).WithOverrides()
	if err != nil || empty.Hash() != none.Hash() || len(empty.Overrides()) != 0 {
		t.Errorf("without overrides again: %v", err)
	}
	excepted, err := with(none, e).WithOverrides(a)
	if err != nil || excepted.Hash() != with(overriding(t, a), e).Hash() {
		t.Errorf("the hash depends on what came first: %v", err)
	}
}

// Whatever overrides there are and in whatever order: what Says answers is what going
// through them one by one answers, and an image of which a Deny speaks is denied.
func TestOverridesBySearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"docker.io/library/nginx", "docker.io/nginx", "ghcr.io/org/app", "ghcr.io/org/app2", "a.example/b"}
	patterns := append([]string{"*", "ghcr.io/*", "ghcr.io/org/ap?", "docker.io/ngin*", "*/app"}, names...)
	namespaces := [][]string{nil, {"*"}, {"team-a"}, {"team-*"}, {"other"}}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	said := 0
	for turn := range 3000 {
		var list []*policy.Override
		for i := range 1 + random.IntN(6) {
			o := &policy.Override{
				Name: fmt.Sprint("o", i), Hash: "1", Effect: policy.OverrideAllow, Reason: "r",
				Expires: overrideTime.Add(time.Duration(random.IntN(4)-1) * time.Hour), Namespaces: namespaces[random.IntN(len(namespaces))],
			}
			if random.IntN(2) == 0 {
				o.Effect = policy.OverrideDeny
			}
			if random.IntN(2) == 0 {
				o.Digests = []image.Digest{digestOf(random.IntN(3))}
			} else {
				o.Repositories = []string{pick(patterns)}
			}
			list = append(list, o)
		}
		subject := &policy.Subject{Namespace: pick([]string{"team-a", "team-b", ""}), Time: overrideTime, Bare: random.IntN(2) == 0}
		about := policy.Overridden{Names: []image.Ref{image.MustParse(pick(names) + ":v1")}, Digests: []image.Digest{digestOf(random.IntN(3))}}
		for _, effect := range []policy.OverrideEffect{policy.OverrideAllow, policy.OverrideDeny} {
			sure, doubt := plainly(list, effect, subject, about)
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			in := overriding(t, list...).Overriding(subject)
			var got *policy.Overruling
			if in != nil {
				got = in.Says(effect, about)
			}
			switch {
			case (got != nil) != (sure || doubt):
				t.Fatalf("turn %d: %+v of %+v in %+v: %+v", turn, effect, about, subject, got)
			case got != nil && got.Doubtful == sure:
				t.Fatalf("turn %d: in doubt %t, sure %t", turn, got.Doubtful, sure)
			case got != nil:
				said++
			}
		}
	}
	if said < 1000 {
		t.Errorf("only %d times anything was said", said)
	}
}

// plainly goes through overrides one by one.
func plainly(list []*policy.Override, effect policy.OverrideEffect, s *policy.Subject, about policy.Overridden) (sure, doubt bool) {
	for _, o := range list {
		if o.Effect != effect || !s.Time.Before(o.Expires) {
			continue
		}
		name := about.Names[0].Repository().String()
		short := strings.Replace(name, "docker.io/library/", "docker.io/", 1)
		fits := slices.Contains(o.Digests, about.Digests[0]) || wildcard.Any(o.Repositories, name) || wildcard.Any(o.Repositories, short)
		switch {
		case !fits:
		case len(o.Namespaces) == 0 || wildcard.Any(o.Namespaces, s.Namespace):
			sure = true
		case s.Bare && s.Namespace == "" && effect == policy.OverrideDeny:
			doubt = true
		}
	}
	return sure, doubt
}

func TestBrokenOverrideSaysSo(t *testing.T) {
	o := &policy.Override{Name: "a", Hash: "1", Effect: policy.OverrideDeny, Repositories: []string{"*"}, Broken: fmt.Errorf("broken")}
	said := overriding(t, o).Overriding(&policy.Subject{Time: overrideTime.AddDate(100, 0, 0)}).
		Says(policy.OverrideDeny, policy.Overridden{Names: []image.Ref{image.MustParse("nginx")}})
	if reason := said.Reason(); reason.Code != policy.OverrideDenied || !strings.Contains(reason.Message, "broken") || reason.Hint == "" {
		t.Errorf("%+v", reason)
	}
}

// A thousand overrides cost a request what a map costs.
func BenchmarkOverriding(b *testing.B) {
	var list []*policy.Override
	for i := range 1000 {
		o := &policy.Override{Name: fmt.Sprint("o", i), Hash: "1", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime.Add(time.Hour), Namespaces: []string{"other"}}
		switch i % 3 {
		case 0:
			o.Digests = []image.Digest{image.DigestOf([]byte(o.Name))}
		case 1:
			o.Repositories = []string{"ghcr.io/org/" + o.Name}
		default:
			o.Signers = []policy.OverrideSigner{{KeyFingerprint: o.Name}}
		}
		list = append(list, o)
	}
	list[999].Namespaces = nil
	set := overriding(b, list...)
	about := policy.Overridden{
		Names: []image.Ref{image.MustParse("nginx:1")}, Digests: []image.Digest{digestOf(1)},
		Facts: []verify.Fact{{Signer: verify.Signer{KeyFingerprint: "x"}}},
	}
	subject := &policy.Subject{Namespace: "team-a", Time: overrideTime}
	b.ReportAllocs()
	for b.Loop() {
		if in := set.Overriding(subject); in == nil || in.WantsDigest(policy.OverrideAllow) || in.Says(policy.OverrideDeny, about) != nil {
			b.Fatal("it says something")
		}
	}
}

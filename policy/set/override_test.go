package set_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

var overrideTime = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func digestOf(n int) image.Digest { return image.DigestOf([]byte{byte(n)}) }

func overriding(t testing.TB, list ...*policy.Override) *set.Set {
	t.Helper()
	set, err := set.New()
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
		{"a signer to allow, without an authority", func(o *policy.Override) {
			o.Effect, o.Signers = policy.OverrideAllow, []policy.OverrideSigner{{KeyFingerprint: "a"}}
		}},
	} {
		wrong := good
		c.change(&wrong)
		set, err := set.New()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.WithOverrides(&wrong); err == nil {
			t.Errorf("%s is taken", c.reason)
		}
	}
	for _, c := range []struct {
		reason string
		change func(*policy.Override)
	}{
		{"whole", func(*policy.Override) {}},
		{"broken, of which a part denies", func(o *policy.Override) {
			o.Broken, o.Reason, o.Expires = fmt.Errorf("broken"), "", time.Time{}
		}},
		{"of a signer to deny, without an authority", func(o *policy.Override) {
			o.Repositories, o.Signers = nil, []policy.OverrideSigner{{KeyFingerprint: "a"}}
		}},
		{"of a signer to allow, and how to prove it", func(o *policy.Override) {
			o.Effect, o.Signers = policy.OverrideAllow, []policy.OverrideSigner{{KeyFingerprint: "a", Authority: authority("a")}}
		}},
	} {
		right := good
		c.change(&right)
		if got := overriding(t, &right).Overrides(); len(got) != 1 || got[0] != &right {
			t.Errorf("%s: %v", c.reason, got)
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
	with := func(set *set.Set, exceptions ...*policy.Exception) *set.Set {
		next, err := set.With(exceptions...)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	none := overriding(t)
	seen := map[string]string{}
	for name, set := range map[string]*set.Set{
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
	if err != nil || empty.Hash() != setOf(t).Hash() || none.Hash() != empty.Hash() || len(empty.Overrides()) != 0 {
		t.Errorf("without overrides again: %v", err)
	}
	excepted, err := with(none, e).WithOverrides(a)
	if err != nil || excepted.Hash() != with(overriding(t, a), e).Hash() {
		t.Errorf("the hash depends on what came first: %v", err)
	}
}

// For any overrides in any order, the index returns the same as going through them
// one by one, and an image that a Deny matches is denied.
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
		subject := &policy.Subject{Namespace: pick([]string{"team-a", "team-b", ""}), Time: overrideTime, Shape: policy.Shape{Bare: random.IntN(2) == 0}}
		about := set.Overridden{Names: []image.Ref{image.MustParse(pick(names) + ":v1")}, Digests: []image.Digest{digestOf(random.IntN(3))}}
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
		t.Errorf("only %d results", said)
	}
}

// A Deny holds under each name that a registry has by its form; an Allow under its own.
func TestOverridesOfOtherNames(t *testing.T) {
	const ecr = "1.dkr.ecr.eu-west-1.amazonaws.com"
	for _, c := range []struct {
		reason, written, ref string
		denied, allowed      bool
	}{
		{"the name itself", ecr + "/bad", ecr + "/bad:v1", true, true},
		{"its name with IPv6", ecr + "/bad", "1.dkr-ecr.eu-west-1.on.aws/bad:v1", true, false},
		{"its name with FIPS, and a pattern", ecr + "/b*", "1.dkr.ecr-fips.eu-west-1.amazonaws.com/bad", true, false},
		{"another name of Docker Hub", "registry-?.docker.io/bad/*", "registry-1.docker.io/bad/app", true, false},
		{"its usual name", "registry*/bad/*", "bad/app", true, false},
		{"an official image there", "registry*/nginx", "nginx", true, false},
		{"its usual name in the pattern", "docker.io/bad/*", "registry-1.docker.io/bad/app", true, true},
		{"another repository of Docker Hub", "registry-?.docker.io/bad/*", "registry-1.docker.io/good/app", false, false},
		{"an IPv4 address as IPv6", "10.0.0.5:5000/bad", "[::ffff:10.0.0.5]:5000/bad", true, false},
		{"another name of the public registry", "public.ecr.aws/bad/*", "ecr-public.aws.com/bad/app", true, false},
		{"another name of Google's registry", "gcr.io/bad/*", "us-docker.pkg.dev/bad/gcr.io/app", true, false},
		{"another repository there", ecr + "/bad", "1.dkr-ecr.eu-west-1.on.aws/good", false, false},
		{"another account's", ecr + "/bad", "2.dkr-ecr.eu-west-1.on.aws/bad", false, false},
		{"another port", "10.0.0.5:5000/bad", "[::ffff:10.0.0.5]:5001/bad", false, false},
	} {
		about := set.Overridden{Names: []image.Ref{image.MustParse(c.ref)}}
		for effect, want := range map[policy.OverrideEffect]bool{policy.OverrideDeny: c.denied, policy.OverrideAllow: c.allowed} {
			one := &policy.Override{
				Name: "o", Hash: "1", Effect: effect, Reason: "r", Expires: overrideTime.Add(time.Hour), Repositories: []string{c.written},
			}
			in := overriding(t, one).Overriding(&policy.Subject{Namespace: "team-a", Time: overrideTime})
			if got := in.Says(effect, about) != nil; got != want {
				t.Errorf("%s: %s is %t", c.reason, effect, got)
			}
		}
	}
}

// plainly goes through overrides one by one.
func plainly(list []*policy.Override, effect policy.OverrideEffect, s *policy.Subject, about set.Overridden) (sure, doubt bool) {
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

// TestOverridesInForce: what has to be found out about an image hangs on the overrides
// that are in force for its object, and on no others.
func TestOverridesInForce(t *testing.T) {
	key, keyless := authority("a"), &verify.Authority{Name: "b", Keyless: &verify.Keyless{}}
	byKey := policy.OverrideSigner{KeyFingerprint: "ab", Authority: key}
	byName := policy.OverrideSigner{Identity: verify.Identity{Subject: verify.Exactly("s")}, Authority: keyless}
	some := func(effect policy.OverrideEffect, change func(*policy.Override)) policy.Override {
		o := policy.Override{Hash: "1", Effect: effect, Reason: "r", Expires: overrideTime.Add(time.Hour)}
		change(&o)
		return o
	}
	digest := func(o *policy.Override) { o.Digests = []image.Digest{digestOf(1)} }
	repository := func(o *policy.Override) { o.Repositories = []string{"docker.io/nginx"} }
	signers := func(list ...policy.OverrideSigner) func(*policy.Override) {
		return func(o *policy.Override) { o.Signers = list }
	}
	ended := func(o *policy.Override) { digest(o); signers(byKey)(o); o.Expires = overrideTime }
	other := func(o *policy.Override) { digest(o); signers(byKey)(o); o.Namespaces = []string{"other"} }
	const allow, deny = policy.OverrideAllow, policy.OverrideDeny
	for _, c := range []struct {
		reason string
		list   []policy.Override
		want   string // empty: none is in force
	}{
		{"there is none", nil, ""},
		{"one has ended", []policy.Override{some(deny, ended)}, ""},
		{"one is for another namespace", []policy.Override{some(deny, other)}, ""},
		{"one has ended, and one goes by a name", []policy.Override{some(deny, ended), some(allow, repository)}, "in force"},
		{"one is for others, and one goes by a name", []policy.Override{some(allow, other), some(deny, repository)}, "in force"},
		{"a digest is denied", []policy.Override{some(deny, digest)}, "in force, digests to deny"},
		{"a digest is allowed", []policy.Override{some(allow, digest)}, "in force, digests to allow"},
		{"a key is denied", []policy.Override{some(deny, signers(byKey))}, "in force, signers to deny, maybe by key"},
		{"an identity is denied", []policy.Override{some(deny, signers(byName))}, "in force, signers to deny, maybe keyless"},
		{"both are, by one", []policy.Override{some(deny, signers(byKey, byName))}, "in force, signers to deny, maybe by key, maybe keyless"},
		{"a key is allowed", []policy.Override{some(allow, signers(byKey))}, "in force, signers to allow, ask a"},
		{"both are, by one", []policy.Override{some(allow, signers(byKey, byName))}, "in force, signers to allow, ask a, ask b"},
		{"a key is denied, an identity allowed", []policy.Override{some(deny, signers(byKey)), some(allow, signers(byName))}, "in force, signers to allow, signers to deny, ask b, maybe by key"},
		{"a digest is denied, a key allowed", []policy.Override{some(deny, digest), some(allow, signers(byKey))}, "in force, digests to deny, signers to allow, ask a"},
	} {
		var list []*policy.Override
		for i := range c.list {
			c.list[i].Name = fmt.Sprint("o", i)
			list = append(list, &c.list[i])
		}
		in := overriding(t, list...).Overriding(&policy.Subject{Namespace: "team-a", Time: overrideTime})
		var got []string
		say := func(is bool, what string) {
			if is {
				got = append(got, what)
			}
		}
		say(in != nil, "in force")
		if in != nil {
			say(in.WantsDigest(allow), "digests to allow")
			say(in.WantsDigest(deny), "digests to deny")
			say(in.WantsSigner(allow), "signers to allow")
			say(in.WantsSigner(deny), "signers to deny")
			for _, a := range in.Authorities() {
				say(true, "ask "+a.Name)
			}
			say(in.MayBeDenied(key), "maybe by key")
			say(in.MayBeDenied(keyless), "maybe keyless")
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestReportedOverride: of several that match an image, the certain one is reported, then
// the one that needs the least, then the first by name.
func TestReportedOverride(t *testing.T) {
	named := func(name string, change func(*policy.Override)) *policy.Override {
		o := &policy.Override{Name: name, Hash: "1", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime.Add(time.Hour)}
		change(o)
		return o
	}
	digests := func(list ...int) func(*policy.Override) {
		return func(o *policy.Override) {
			for _, n := range list {
				o.Digests = append(o.Digests, digestOf(n))
			}
		}
	}
	repository := func(o *policy.Override) { o.Repositories = []string{"docker.io/*"} }
	doubtful := func(o *policy.Override) { repository(o); o.Namespaces = []string{"team-a"} }
	signer := func(fingerprints ...string) func(*policy.Override) {
		return func(o *policy.Override) {
			for _, f := range fingerprints {
				o.Signers = append(o.Signers, policy.OverrideSigner{KeyFingerprint: f})
			}
		}
	}
	about := set.Overridden{
		Names:   []image.Ref{image.MustParse("nginx:1")},
		Digests: []image.Digest{digestOf(1), digestOf(2)},
		Facts:   append(signedBy("ab").Facts, signedBy("cd").Facts...),
	}
	for _, c := range []struct {
		reason string
		list   []*policy.Override
		want   string // its name, and by what; empty: none
	}{
		{"a digest", []*policy.Override{named("a", digests(2))}, "a by digest " + digestOf(2).String()},
		{"another digest", []*policy.Override{named("a", digests(3))}, ""},
		{"the first of two digests", []*policy.Override{named("a", digests(2, 1))}, "a by digest " + digestOf(1).String()},
		{"a signer", []*policy.Override{named("a", signer("cd"))}, "a by images signed by " + verify.Signer{KeyFingerprint: "cd"}.String()},
		{"the second of its signers", []*policy.Override{named("a", signer("x", "ab"))}, "a by images signed by " + verify.Signer{KeyFingerprint: "ab"}.String()},
		{"another signer", []*policy.Override{named("a", signer("x"))}, ""},
		{"the first by name", []*policy.Override{named("b", digests(1)), named("a", digests(2))}, "a by digest " + digestOf(2).String()},
		{"the name before the digest", []*policy.Override{named("a", digests(1)), named("b", repository)}, "b by repositories docker.io/*"},
		{"the first of two that go by the name", []*policy.Override{named("c", repository), named("b", repository), named("a", digests(1))}, "b by repositories docker.io/*"},
		{"a certain digest before a name in doubt", []*policy.Override{named("a", doubtful), named("b", digests(1))}, "b by digest " + digestOf(1).String()},
		{"a certain name before one in doubt", []*policy.Override{named("a", doubtful), named("b", repository)}, "b by repositories docker.io/*"},
		{"one in doubt", []*policy.Override{named("a", doubtful)}, "a by repositories docker.io/*"},
	} {
		in := overriding(t, c.list...).Overriding(&policy.Subject{Shape: policy.Shape{Bare: true}, Time: overrideTime})
		got := ""
		if said := in.Says(policy.OverrideDeny, about); said != nil {
			got = said.Override.Name + " by " + said.By
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
		if in.Says(policy.OverrideAllow, about) != nil {
			t.Errorf("%s: what denies allows", c.reason)
		}
	}
}

// TestMayDeny: whether a Deny is in force where a subject is, whatever its images are.
func TestMayDeny(t *testing.T) {
	deny := policy.Override{Name: "a", Hash: "1", Effect: policy.OverrideDeny, Reason: "r", Expires: overrideTime.Add(time.Hour), Repositories: []string{"*"}}
	here := policy.Subject{Kind: "Pod", Namespace: "here"}
	for _, row := range []struct {
		reason  string
		change  func(*policy.Override)
		subject policy.Subject
		want    bool
	}{
		{"everywhere", func(*policy.Override) {}, here, true},
		{"here", func(o *policy.Override) { o.Namespaces = []string{"here"} }, here, true},
		{"by a pattern", func(o *policy.Override) { o.Namespaces = []string{"he*"} }, here, true},
		{"there", func(o *policy.Override) { o.Namespaces = []string{"there"} }, here, false},
		{"there, by a pattern", func(o *policy.Override) { o.Namespaces = []string{"th*"} }, here, false},
		{"there, and the image's namespace is unknown", func(o *policy.Override) { o.Namespaces = []string{"there"} }, policy.Subject{Kind: "Pod", Shape: policy.Shape{Bare: true}}, true},
		{"there, and the object is in no namespace", func(o *policy.Override) { o.Namespaces = []string{"there"} }, policy.Subject{Kind: "Node"}, false},
		{"until now", func(o *policy.Override) { o.Expires = overrideTime }, here, false},
		{"it allows", func(o *policy.Override) { o.Effect = policy.OverrideAllow }, here, false},
	} {
		one := deny
		row.change(&one)
		row.subject.Time = overrideTime
		if got := overriding(t, &one).MayDeny(&row.subject); got != row.want {
			t.Errorf("%s: %t, want %t", row.reason, got, row.want)
		}
	}
	if overriding(t).MayDeny(&here) {
		t.Error("without overrides one may deny")
	}
}

func TestBrokenOverrideReason(t *testing.T) {
	o := &policy.Override{Name: "a", Hash: "1", Effect: policy.OverrideDeny, Repositories: []string{"*"}, Broken: fmt.Errorf("broken")}
	said := overriding(t, o).Overriding(&policy.Subject{Time: overrideTime.AddDate(100, 0, 0)}).
		Says(policy.OverrideDeny, set.Overridden{Names: []image.Ref{image.MustParse("nginx")}})
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
	active := overriding(b, list...)
	about := set.Overridden{
		Names: []image.Ref{image.MustParse("nginx:1")}, Digests: []image.Digest{digestOf(1)},
		Facts: []verify.Fact{{Signer: verify.Signer{KeyFingerprint: "x"}}},
	}
	subject := &policy.Subject{Namespace: "team-a", Time: overrideTime}
	b.ReportAllocs()
	for b.Loop() {
		if in := active.Overriding(subject); in == nil || in.WantsDigest(policy.OverrideAllow) || in.Says(policy.OverrideDeny, about) != nil {
			b.Fatal("an override matches")
		}
	}
}

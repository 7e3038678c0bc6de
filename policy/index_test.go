package policy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// indexed asks for a check of each image that its patterns concern.
type indexed struct {
	name     string
	patterns []string
	known    bool
	targets  []Target
}

func (r indexed) Name() string                    { return r.name }
func (r indexed) Extractors(*Subject) []Extractor { return nil }
func (r indexed) Targets() []Target               { return r.targets }
func (r indexed) ImagePatterns() ([]string, bool) { return r.patterns, r.known }

func (r indexed) Plan(_ context.Context, s *Subject, images []Image) (RulePlan, error) {
	matched := false
	for _, t := range r.targets {
		matched = matched || wildcard.Match(t.Kind, s.Kind) && (len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace))
	}
	if !matched {
		return RulePlan{Skip: "no"}, nil
	}
	var plan RulePlan
	for _, i := range images {
		if reference.Concerns(r.patterns, i.Ref) {
			plan.Checks = append(plan.Checks, Check{Entry: r.name, Image: i})
		}
	}
	return plan, nil
}

func pick(random *rand.Rand, from ...string) string { return from[random.IntN(len(from))] }

// written makes a reference, and wild a pattern that often fits one.
func written(random *rand.Rand) string {
	text := pick(random, "", "docker.io/", "index.docker.io/", "ghcr.io/", "registry.test:5000/", "docker.io/library/") +
		pick(random, "nginx", "org/app", "a", "org/team/app", "library/nginx", "ab/c")
	text += pick(random, "", ":v1", ":latest", ":v1.2.3")
	return text + pick(random, "", "", "@sha256:"+strings.Repeat(pick(random, "a", "b", "0"), 64))
}

func wild(random *rand.Rand) string {
	text := reference.Normal(written(random))
	for range random.IntN(3) {
		switch i := random.IntN(len(text)); random.IntN(4) {
		case 0:
			text = text[:i] + "*"
		case 1:
			text = "*" + text[i:]
		case 2:
			text = text[:i] + "?" + text[i+1:]
		case 3:
			text = text[:i] + "*" + text[min(len(text), i+random.IntN(5)):]
		}
	}
	return text
}

func randomSet(random *rand.Rand) (*Set, error) {
	var policies []*Policy
	for n := range listed + 40 {
		r := indexed{name: fmt.Sprint("r", n), known: random.IntN(10) > 0}
		for range 1 + random.IntN(3) {
			r.patterns = append(r.patterns, wild(random))
		}
		for range 1 + random.IntN(2) {
			t := Target{Kind: pick(random, "Pod", "Job", "P*", "*", "Namespace")}
			if random.IntN(3) == 0 {
				t.Namespaces = []string{pick(random, "team", "prod-*", "prod-eu", "*")}
			}
			r.targets = append(r.targets, t)
		}
		policies = append(policies, &Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("p%03d", n), Namespace: pick(random, "", "", "team"), Rules: []Rule{r}})
	}
	return NewSet(policies...)
}

func TestIndexedPlanIsTheLinearOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 60 {
		set, err := randomSet(random)
		if err != nil {
			t.Fatal(err)
		}
		linear := *set
		linear.index = &index{members: set.index.members}
		for range 50 {
			subject := &Subject{Kind: pick(random, "Pod", "Job", "Service", "Namespace"), Namespace: pick(random, "", "team", "prod-eu")}
			var images []Image
			for n := range random.IntN(4) {
				images = append(images, Image{Pointer: fmt.Sprint("/", n), Ref: image.MustParse(written(random))})
			}
			find := func([]Extractor) ([]Image, error) { return images, nil }
			got, want := set.Plan(t.Context(), subject, find), linear.Plan(t.Context(), subject, find)
			if !reflect.DeepEqual(got.Checks, want.Checks) {
				t.Fatalf("%+v: %d checks, want %d", images, len(got.Checks), len(want.Checks))
			}
			found += len(got.Checks)
		}
	}
	if found == 0 {
		t.Error("nothing was ever found, so that nothing was compared")
	}
}

func TestIndexWithoutImages(t *testing.T) {
	set, err := randomSet(rand.New(rand.NewPCG(3, 4)))
	if err != nil {
		t.Fatal(err)
	}
	unreadable := errors.New("unreadable")
	candidates := set.index.candidates(&Subject{Kind: "Pod", Namespace: "team"}, func() ([]Image, error) { return nil, unreadable })
	some := set.index.candidates(&Subject{Kind: "Pod", Namespace: "team"}, func() ([]Image, error) { return nil, nil })
	if len(candidates) <= len(some) {
		t.Errorf("of images that cannot be read %d rules are asked, of none %d", len(candidates), len(some))
	}
}

// unselective says nothing beforehand.
type unselective struct{ name string }

func (r unselective) Name() string                    { return r.name }
func (r unselective) Extractors(*Subject) []Extractor { return nil }
func (r unselective) Plan(context.Context, *Subject, []Image) (RulePlan, error) {
	return RulePlan{Skip: "no"}, nil
}

// elsewhere returns policies with rules about another kind.
func elsewhere(count int) []*Policy {
	var policies []*Policy
	for n := range count {
		r := indexed{name: "r", known: true, targets: []Target{{Kind: "Elsewhere"}}}
		policies = append(policies, &Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("elsewhere%03d", n), Rules: []Rule{r}})
	}
	return policies
}

// TestLargeSetAsksWhoMaySpeak: of a large set, a rule is asked where it may speak of the
// subject, and is not where it says beforehand that it does not.
func TestLargeSetAsksWhoMaySpeak(t *testing.T) {
	pods := func(namespaces ...string) []Target { return []Target{{Kind: "Pod", Namespaces: namespaces}} }
	rule := func(targets []Target, patterns ...string) indexed {
		return indexed{name: "r", known: true, patterns: patterns, targets: targets}
	}
	fits := "registry.test/app*"
	unknown, doubtful := rule(pods(), "ghcr.io/*"), rule(pods())
	unknown.known, doubtful.known = false, false
	pod, namespace := Subject{Kind: "Pod", Namespace: "team"}, Subject{Kind: "Namespace", Name: "team"}
	for _, c := range []struct {
		reason    string
		namespace string // of the policy
		rule      Rule
		subject   Subject
		want      bool
	}{
		{"its kind and its pattern", "", rule(pods(), fits), pod, true},
		{"another kind", "", rule([]Target{{Kind: "Job"}}, fits), pod, false},
		{"a pattern for kinds", "", rule([]Target{{Kind: "P*"}}, fits), pod, true},
		{"of two kinds the second", "", rule([]Target{{Kind: "Job"}, {Kind: "Pod"}}, fits), pod, true},
		{"another pattern", "", rule(pods(), "ghcr.io/*"), pod, false},
		{"of two patterns the second", "", rule(pods(), "ghcr.io/*", fits), pod, true},
		{"no pattern", "", rule(pods()), pod, false},
		{"a pattern of which every text is found in anything", "", rule(pods(), "*"), pod, true},
		{"one such beside another", "", rule(pods(), "ghcr.io/*", "*"), pod, true},
		{"the last text of a pattern", "", rule(pods(), "*/app:v1"), pod, true},
		{"a pattern of one text, which is not there", "", rule(pods(), "*/xyz"), pod, false},
		{"patterns that nobody knows beforehand", "", doubtful, pod, true},
		{"and some that are no more than examples", "", unknown, pod, true},
		{"a rule that says nothing beforehand", "", unselective{"r"}, pod, true},
		{"one of a policy of another namespace", "other", unselective{"r"}, pod, false},
		{"one of a policy of its namespace", "team", unselective{"r"}, pod, true},
		{"a rule that names no kind", "", rule(nil, fits), pod, true},
		{"one that names no kind, of another namespace", "other", rule(nil, fits), pod, false},
		{"its namespace", "", rule(pods("other", "team"), fits), pod, true},
		{"another namespace", "", rule(pods("other"), fits), pod, false},
		{"a pattern for namespaces", "", rule(pods("other", "te*"), fits), pod, true},
		{"the policy's own namespace", "team", rule(pods("other"), fits), pod, true},
		{"the policy's other namespace", "other", rule(pods("team"), fits), pod, false},
		{"a Namespace is in none, and goes by its name", "", rule([]Target{{Kind: "Namespace", Namespaces: []string{"team"}}}, fits), namespace, true},
		{"which any kind may mean", "", rule([]Target{{Kind: "*", Namespaces: []string{"team"}}}, fits), namespace, true},
		{"and another kind does not", "", rule(pods("team"), fits), namespace, false},
	} {
		set, err := NewSet(append(elsewhere(listed), &Policy{Kind: "ClusterPolicy", Name: "p", Namespace: c.namespace, Rules: []Rule{c.rule}})...)
		if err != nil {
			t.Fatal(err)
		}
		find := func([]Extractor) ([]Image, error) {
			return []Image{{Pointer: "/a", Ref: image.MustParse("registry.test/app:v1")}}, nil
		}
		plan := set.Plan(t.Context(), &c.subject, find)
		if got := len(plan.Checks)+len(plan.Results) > 0; got != c.want {
			t.Errorf("%s: asked %t", c.reason, got)
		}
	}
}

// TestSmallSetSaysWhyNot: up to so many rules each is told of, though it does not apply.
func TestSmallSetSaysWhyNot(t *testing.T) {
	for count, want := range map[int]int{1: 1, listed: listed, listed + 1: 0} {
		set, err := NewSet(elsewhere(count)...)
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &Subject{Kind: "Pod", Namespace: "team"}, func([]Extractor) ([]Image, error) { return nil, nil })
		if len(plan.Results) != want {
			t.Errorf("of %d rules %d are told of, want %d", count, len(plan.Results), want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name    string
		count   int
		kind    string
		pattern string
	}{
		{"one", 1, "Pod", "ghcr.io/org-%d/app-*"},
		{"thousand-prefixes", 1000, "Pod", "ghcr.io/org-%d/app-*"},
		{"thousand-stars", 1000, "Pod", "*/org-%d/app-*"},
		{"thousand-kinds", 1000, "Kind%d", "*"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var policies []*Policy
			for n := range c.count {
				kind := c.kind
				if strings.Contains(kind, "%d") {
					kind = fmt.Sprintf(kind, n)
				}
				pattern := c.pattern
				if strings.Contains(pattern, "%d") {
					pattern = fmt.Sprintf(pattern, n)
				}
				r := indexed{name: "r", known: true, patterns: []string{pattern}, targets: []Target{{Kind: kind}}}
				policies = append(policies, &Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("p%04d", n), Rules: []Rule{r}})
			}
			set, err := NewSet(policies...)
			if err != nil {
				b.Fatal(err)
			}
			images := []Image{{Pointer: "/a", Ref: image.MustParse("ghcr.io/org-0/app-web:v1")}}
			find := func([]Extractor) ([]Image, error) { return images, nil }
			subject := &Subject{Kind: "Pod", Namespace: "team"}
			b.ReportAllocs()
			for b.Loop() {
				set.Plan(b.Context(), subject, find)
			}
		})
	}
}

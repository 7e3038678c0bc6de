package set

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// indexed asks for a check of each image that its patterns concern.
type indexed struct {
	name     string
	patterns []string
	known    bool
	targets  []policy.Target
}

func (r indexed) Name() string                                  { return r.name }
func (r indexed) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r indexed) Targets() []policy.Target                      { return r.targets }
func (r indexed) ImagePatterns() ([]string, bool)               { return r.patterns, r.known }

func (r indexed) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	matched := false
	for _, t := range r.targets {
		matched = matched || wildcard.Match(t.Kind, s.Kind) && (len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace))
	}
	if !matched {
		return policy.RulePlan{Skip: "no"}, nil
	}
	var plan policy.RulePlan
	for _, i := range images {
		if reference.Concerns(r.patterns, i.Ref) {
			plan.Checks = append(plan.Checks, policy.Check{Entry: r.name, Image: i})
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
	var policies []*policy.Policy
	for n := range listed + 40 {
		r := indexed{name: fmt.Sprint("r", n), known: random.IntN(10) > 0}
		for range 1 + random.IntN(3) {
			r.patterns = append(r.patterns, wild(random))
		}
		for range 1 + random.IntN(2) {
			t := policy.Target{Kind: pick(random, "Pod", "Job", "P*", "*", "Namespace")}
			if random.IntN(3) == 0 {
				t.Namespaces = []string{pick(random, "team", "prod-*", "prod-eu", "*")}
			}
			r.targets = append(r.targets, t)
		}
		policies = append(policies, &policy.Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("p%03d", n), Namespace: pick(random, "", "", "team"), Rules: []policy.Rule{r}})
	}
	return New(policies...)
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
			subject := &policy.Subject{Kind: pick(random, "Pod", "Job", "Service", "Namespace"), Namespace: pick(random, "", "team", "prod-eu")}
			var images []policy.Image
			for n := range random.IntN(4) {
				images = append(images, policy.Image{Pointer: fmt.Sprint("/", n), Ref: image.MustParse(written(random))})
			}
			find := func([]policy.Extractor) ([]policy.Image, error) { return images, nil }
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
	candidates := set.index.candidates(&policy.Subject{Kind: "Pod", Namespace: "team"}, func() ([]policy.Image, error) { return nil, unreadable })
	some := set.index.candidates(&policy.Subject{Kind: "Pod", Namespace: "team"}, func() ([]policy.Image, error) { return nil, nil })
	if len(candidates) <= len(some) {
		t.Errorf("of images that cannot be read %d rules are asked, of none %d", len(candidates), len(some))
	}
}

// unselective is a rule without targets for the index.
type unselective struct{ name string }

func (r unselective) Name() string                                  { return r.name }
func (r unselective) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r unselective) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{Skip: "no"}, nil
}

// elsewhere returns policies with rules about another kind.
func elsewhere(count int) []*policy.Policy {
	var policies []*policy.Policy
	for n := range count {
		r := indexed{name: "r", known: true, targets: []policy.Target{{Kind: "Elsewhere"}}}
		policies = append(policies, &policy.Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("elsewhere%03d", n), Rules: []policy.Rule{r}})
	}
	return policies
}

// TestLargeSetIndex: of a large set, a rule is evaluated where it may match the
// subject, and is not where the index excludes it.
func TestLargeSetIndex(t *testing.T) {
	pods := func(namespaces ...string) []policy.Target {
		return []policy.Target{{Kind: "Pod", Namespaces: namespaces}}
	}
	rule := func(targets []policy.Target, patterns ...string) indexed {
		return indexed{name: "r", known: true, patterns: patterns, targets: targets}
	}
	fits := "registry.test/app*"
	unknown, doubtful := rule(pods(), "ghcr.io/*"), rule(pods())
	unknown.known, doubtful.known = false, false
	pod, namespace := policy.Subject{Kind: "Pod", Namespace: "team"}, policy.Subject{Kind: "Namespace", Name: "team"}
	for _, c := range []struct {
		reason    string
		namespace string // of the policy
		rule      policy.Rule
		subject   policy.Subject
		want      bool
	}{
		{"its kind and its pattern", "", rule(pods(), fits), pod, true},
		{"another kind", "", rule([]policy.Target{{Kind: "Job"}}, fits), pod, false},
		{"a pattern for kinds", "", rule([]policy.Target{{Kind: "P*"}}, fits), pod, true},
		{"of two kinds the second", "", rule([]policy.Target{{Kind: "Job"}, {Kind: "Pod"}}, fits), pod, true},
		{"another pattern", "", rule(pods(), "ghcr.io/*"), pod, false},
		{"of two patterns the second", "", rule(pods(), "ghcr.io/*", fits), pod, true},
		{"no pattern", "", rule(pods()), pod, false},
		{"a pattern of which every text is found in anything", "", rule(pods(), "*"), pod, true},
		{"one such beside another", "", rule(pods(), "ghcr.io/*", "*"), pod, true},
		{"the last text of a pattern", "", rule(pods(), "*/app:v1"), pod, true},
		{"a pattern of one text, which is not there", "", rule(pods(), "*/xyz"), pod, false},
		{"patterns that are not known in advance", "", doubtful, pod, true},
		{"and some that are no more than examples", "", unknown, pod, true},
		{"a rule without targets for the index", "", unselective{"r"}, pod, true},
		{"one of a policy of another namespace", "other", unselective{"r"}, pod, false},
		{"one of a policy of its namespace", "team", unselective{"r"}, pod, true},
		{"a rule that names no kind", "", rule(nil, fits), pod, true},
		{"one that names no kind, of another namespace", "other", rule(nil, fits), pod, false},
		{"its namespace", "", rule(pods("other", "team"), fits), pod, true},
		{"another namespace", "", rule(pods("other"), fits), pod, false},
		{"a pattern for namespaces", "", rule(pods("other", "te*"), fits), pod, true},
		{"the policy's own namespace", "team", rule(pods("other"), fits), pod, true},
		{"the policy's other namespace", "other", rule(pods("team"), fits), pod, false},
		{"a Namespace is in none, and goes by its name", "", rule([]policy.Target{{Kind: "Namespace", Namespaces: []string{"team"}}}, fits), namespace, true},
		{"which any kind may mean", "", rule([]policy.Target{{Kind: "*", Namespaces: []string{"team"}}}, fits), namespace, true},
		{"and another kind does not", "", rule(pods("team"), fits), namespace, false},
	} {
		set, err := New(append(elsewhere(listed), &policy.Policy{Kind: "ClusterPolicy", Name: "p", Namespace: c.namespace, Rules: []policy.Rule{c.rule}})...)
		if err != nil {
			t.Fatal(err)
		}
		find := func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{{Pointer: "/a", Ref: image.MustParse("registry.test/app:v1")}}, nil
		}
		plan := set.Plan(t.Context(), &c.subject, find)
		if got := len(plan.Checks)+len(plan.Results) > 0; got != c.want {
			t.Errorf("%s: asked %t", c.reason, got)
		}
	}
}

// TestSmallSetReportsEachRule: up to a number of rules each is reported, though it does not apply.
func TestSmallSetReportsEachRule(t *testing.T) {
	for count, want := range map[int]int{1: 1, listed: listed, listed + 1: 0} {
		set, err := New(elsewhere(count)...)
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), &policy.Subject{Kind: "Pod", Namespace: "team"}, func([]policy.Extractor) ([]policy.Image, error) { return nil, nil })
		if len(plan.Results) != want {
			t.Errorf("of %d rules %d are reported, want %d", count, len(plan.Results), want)
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
			var policies []*policy.Policy
			for n := range c.count {
				kind := c.kind
				if strings.Contains(kind, "%d") {
					kind = fmt.Sprintf(kind, n)
				}
				pattern := c.pattern
				if strings.Contains(pattern, "%d") {
					pattern = fmt.Sprintf(pattern, n)
				}
				r := indexed{name: "r", known: true, patterns: []string{pattern}, targets: []policy.Target{{Kind: kind}}}
				policies = append(policies, &policy.Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("p%04d", n), Rules: []policy.Rule{r}})
			}
			set, err := New(policies...)
			if err != nil {
				b.Fatal(err)
			}
			images := []policy.Image{{Pointer: "/a", Ref: image.MustParse("ghcr.io/org-0/app-web:v1")}}
			find := func([]policy.Extractor) ([]policy.Image, error) { return images, nil }
			subject := &policy.Subject{Kind: "Pod", Namespace: "team"}
			b.ReportAllocs()
			for b.Loop() {
				set.Plan(b.Context(), subject, find)
			}
		})
	}
}

package configuration

import (
	"cmp"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// TestNamespacesDecideForThemselves: a policy confined to a namespace makes no
// difference elsewhere.
func TestNamespacesDecideForThemselves(t *testing.T) {
	jobs := []string{"Job"}
	const general = "images-ignore"
	admin := about(jobs, open, named("admin"))
	tests := []struct {
		reason string
		others []*policy.Policy
		want   []string // each once for CREATE, once for UPDATE
	}{
		{"the cluster's policy alone", nil, []string{general + elsewhere}},
		{"one namespace closes for itself, and waits longer",
			[]*policy.Policy{about(jobs, in("shop"), patience(30*time.Second))},
			[]string{"images-30s-own In(shop)", general + " NotIn(kube-system quaymaster shop)"}},
		{"an equal one has no webhook of its own",
			[]*policy.Policy{about(jobs, in("shop"), open)}, []string{general + elsewhere}},
		{"nor a weaker one: the cluster's policy holds there, too",
			[]*policy.Policy{about(jobs, in("shop"), audit, patience(time.Second), operations("CREATE"))}, []string{general + elsewhere}},
		{"longer is not closed",
			[]*policy.Policy{about(jobs, in("shop"), open, patience(30*time.Second))},
			[]string{general + " NotIn(kube-system quaymaster shop)", "images-ignore-30s-own In(shop)"}},
		{"a policy of the cluster that names its namespaces is confined as well",
			[]*policy.Policy{about(jobs, within("shop"), named("b"))},
			[]string{"images-own In(shop)", general + " NotIn(kube-system quaymaster shop)"}},
		{"and one that has a pattern is not",
			[]*policy.Policy{about(jobs, within("shop*"), named("b"))}, []string{"images" + elsewhere}},
		{"namespaces that agree share, others do not",
			[]*policy.Policy{about(jobs, in("shop")), about(jobs, in("bank")), about(jobs, in("post"), patience(20*time.Second))},
			[]string{"images-own In(bank shop)", "images-20s-own In(post)",
				general + " NotIn(bank kube-system post quaymaster shop)"}},
		{"an excluded namespace has nothing of its own",
			[]*policy.Policy{about(jobs, within("kube-system", "shop"), named("b"))},
			[]string{"images-own In(shop)", general + " NotIn(kube-system quaymaster shop)"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			c, err := Build(input(t, append(test.others, admin)...))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, w := range test.want {
				name, selector, _ := strings.Cut(w, " ")
				want = append(want, w+" | C batch/v1/jobs", name+"-updates "+selector+" | U batch/v1/jobs")
			}
			slices.Sort(want)
			if got := lines(c.Validating.Webhooks); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(c.Warnings) > 0 {
				t.Errorf("warnings %q", c.Warnings)
			}
		})
	}
}

// TestBounds: beyond the bounds of selectors all namespaces share, and a warning
// is returned. Each row has a twin just within.
func TestBounds(t *testing.T) {
	many := func(n int, edits func(int) []edit) []*policy.Policy {
		var all []*policy.Policy
		for i := range n {
			all = append(all, about([]string{"Job"}, append(edits(i), in(fmt.Sprintf("tenant-%d", i)))...))
		}
		return all
	}
	same := func(int) []edit { return []edit{patience(30 * time.Second)} }
	different := func(i int) []edit { return []edit{patience(time.Duration(11+i) * time.Second)} }
	dozen := func(i int) []edit { return []edit{patience(time.Duration(11+i%12) * time.Second)} }
	own := func(kinds ...string) []*policy.Policy {
		var all []*policy.Policy
		for _, kind := range kinds {
			for i := range maxForms {
				all = append(all, about([]string{kind}, in(fmt.Sprintf("%s-%d", strings.ToLower(kind), i)), patience(time.Duration(11+i)*time.Second)))
			}
		}
		return all
	}
	admin := about([]string{"Job"}, open, named("admin"))
	tests := []struct {
		reason   string
		policies []*policy.Policy
		webhooks int
		general  string
		warning  string
	}{
		{"as many namespaces as a selector names", append(many(maxNamespaces, same), admin), 4, "images-ignore-updates", ""},
		{"one more", append(many(maxNamespaces+1, same), admin), 2, "images-30s-updates.", "in 501 namespaces"},
		{"no policy matches all namespaces", many(maxNamespaces, same), 2, "images-30s-own-", ""},
		{"and there are too many", many(maxNamespaces+1, same), 2, "images-30s-updates.", "in 501 namespaces"},
		{"as many forms as one resource has", append(many(maxForms, different), admin), 2 * (maxForms + 1), "images-ignore-updates", ""},
		{"one more: only the namespaces share", append(many(maxForms+1, different), admin), 4, "images-ignore-updates", "strictest"},
		{"as many names as fit twice, for CREATE and for UPDATE", many(maxNames/2, dozen), 24, "images-11s-", ""},
		{"one more: the last webhook is for both", many(maxNames/2+1, dozen), 23, "images-22s-own-", ""},
		{"webhooks that can all be split", own("Pod", "ReplicationController", "Deployment", "StatefulSet", "CronJob", "Job"), 2 * 6 * maxForms, "images-26s-", ""},
		{"some are for both where others need them", own("Task", "Pod", "ReplicationController", "Deployment", "StatefulSet", "CronJob", "Job"), maxParts, "images-11s-", ""},
		{"as many names as fit once", many(maxNames, dozen), 12, "images-11s-own-", ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			c, err := Build(input(t, test.policies...))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Validating.Webhooks) != test.webhooks || !slices.ContainsFunc(c.Validating.Webhooks, func(w admission.ValidatingWebhook) bool { return strings.HasPrefix(w.Name, test.general) }) {
				t.Errorf("%d webhooks, want %d and %s among them", len(c.Validating.Webhooks), test.webhooks, test.general)
			}
			if test.warning == "" && len(c.Warnings) > 0 || test.warning != "" && (len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].String(), test.warning)) {
				t.Errorf("warnings %q, want %q", c.Warnings, test.warning)
			}
		})
	}
}

// TestStaysSmall: tenants in many namespaces, with policies about many kinds, do
// not make a configuration that the API server cannot store.
func TestStaysSmall(t *testing.T) {
	in := input(t)
	for i := range 300 {
		in.Resources = append(in.Resources, Resource{Group: "example.org", Version: "v1", Name: fmt.Sprintf("kinds%d", i), Kind: fmt.Sprintf("Kind%d", i), Namespaced: true})
		in.Policies = append(in.Policies, about([]string{fmt.Sprintf("Kind%d", i)}, open, named(fmt.Sprintf("admin-%d", i))))
	}
	for i := range 400 {
		p := about([]string{"Pod", "Deployment", "StatefulSet", "CronJob", "Job"}, named("own"), func(p *policy.Policy) {
			p.Kind, p.Namespace = "Policy", fmt.Sprintf("tenant-%03d-%s", i, strings.Repeat("x", 50))
		}, patience(time.Duration(i%30+1)*time.Second))
		for k := range 300 {
			if (i+k)%3 > 0 {
				p.Targets = append(p.Targets, policy.Target{Group: "*", Version: "*", Kind: fmt.Sprintf("Kind%d", k)})
			}
		}
		in.Policies = append(in.Policies, p)
	}
	c, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	content, err := c.Validating.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 1<<20 || len(c.Warnings) == 0 {
		t.Errorf("%d bytes, %d webhooks, %d warnings", len(content), len(c.Validating.Webhooks), len(c.Warnings))
	}
}

// required returns the webhooks that the API server calls about an operation on a
// resource in a namespace, with their rules; matchPolicy Equivalent makes the
// version no matter.
func required(webhooks []admission.ValidatingWebhook, n name, namespace string, operation admission.OperationType) (found []admission.ValidatingWebhook, rules []admission.RuleWithOperations) {
	for _, w := range webhooks {
		selects := w.NamespaceSelector.MatchExpressions[0]
		if slices.Contains(selects.Values, namespace) != (selects.Operator == "In") {
			continue
		}
		for _, r := range w.Rules {
			if slices.Contains(r.APIGroups, n.group) && slices.Contains(r.Resources, n.resource) && slices.Contains(r.Operations, operation) {
				found, rules = append(found, w), append(rules, r)
			}
		}
	}
	return found, rules
}

// validating returns mutating webhooks as if they were validating ones.
func validating(webhooks []admission.MutatingWebhook) []admission.ValidatingWebhook {
	var all []admission.ValidatingWebhook
	for _, w := range webhooks {
		all = append(all, admission.ValidatingWebhook{
			Name: w.Name, Rules: w.Rules, FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds,
			NamespaceSelector: w.NamespaceSelector, MatchConditions: w.MatchConditions,
		})
	}
	return all
}

// expectation is what policies say of a resource in a namespace, found without
// the code that is tested.
type expectation struct {
	closed, outside bool
	seconds         int32
	operations      []admission.OperationType
}

func expected(policies []*policy.Policy, r Resource, versions []string, namespace string) expectation {
	var e expectation
	for _, p := range policies {
		if p.Namespace != "" && p.Namespace != namespace {
			continue
		}
		for _, target := range p.Targets {
			inside := len(target.Namespaces) == 0 || slices.ContainsFunc(target.Namespaces, func(n string) bool { return wildcard.Match(n, namespace) || strings.ContainsAny(n, "*?") })
			version := slices.ContainsFunc(versions, func(v string) bool { return wildcard.Match(target.Version, v) })
			if !inside || !version || target.Kind != r.Kind {
				continue
			}
			e.closed = e.closed || !p.FailOpen && !p.AuditOnly
			e.outside = e.outside || r.Kind == "PodTemplate" || len(p.Rules) > 0 && r.Kind == "Job"
			e.seconds = max(e.seconds, int32(cmp.Or(p.Timeout, 10*time.Second)/time.Second))
			for _, o := range []admission.OperationType{admission.Create, admission.Update} {
				if len(target.Operations) == 0 || slices.Contains(target.Operations, string(o)) {
					e.operations = append(e.operations, o)
				}
			}
		}
	}
	return e
}

// differs returns how the webhooks that are called about an operation on a resource
// differ from the expectation; empty if they do not.
func (e expectation) differs(webhooks []admission.ValidatingWebhook, operation admission.OperationType) string {
	switch {
	case !slices.Contains(e.operations, operation):
		if len(webhooks) > 0 {
			return "no policy matches it"
		}
		return ""
	case len(webhooks) != 1:
		return fmt.Sprintf("%d calls", len(webhooks))
	case (*webhooks[0].FailurePolicy == admission.Fail) != e.closed:
		return "fails otherwise"
	case *webhooks[0].TimeoutSeconds != e.seconds:
		return "waits otherwise"
	case len(webhooks[0].MatchConditions) > 0 != (operation == admission.Update && !e.outside):
		return "only an update is compared, and only where all images are in spec"
	}
	return ""
}

// anyPolicies returns policies that say all sorts of things.
func anyPolicies(random *mathrand.Rand, namespaces []string) []*policy.Policy {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var policies []*policy.Policy
	for i := range 1 + random.IntN(6) {
		kinds := []string{pick("Job", "Deployment", "CronJob"), pick("Job", "CronJob", "PodTemplate")}
		p := about(kinds, named(fmt.Sprint(i)), patience(time.Duration(random.IntN(4))*time.Second))
		p.FailOpen, p.AuditOnly = random.IntN(2) == 0, random.IntN(4) == 0
		if random.IntN(2) == 0 {
			p.Kind, p.Namespace = "Policy", pick(namespaces...)
		}
		if random.IntN(8) == 0 {
			extract("Job", "/metadata/annotations/image")(p)
		}
		for k := range p.Targets {
			p.Targets[k].Version = pick("*", "*", "v1", "v1beta1")
			switch random.IntN(4) {
			case 0:
				p.Targets[k].Namespaces = []string{pick(namespaces...), pick(namespaces...)}
			case 1:
				p.Targets[k].Operations = []string{pick("CREATE", "UPDATE")}
			}
		}
		policies = append(policies, p)
	}
	return policies
}

// TestOneCallAPhase: for any policies, each operation on each resource in
// each namespace is in one webhook of each configuration if a policy matches
// it, and in none else. That webhook has the settings of the policies that can
// match that resource there.
func TestOneCallAPhase(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(3, 4))
	namespaces := []string{"a", "b", "c", "d", "kube-system", "quaymaster"}
	versions := map[string][]string{"Pod": {"v1"}, "Job": {"v1"}, "Deployment": {"v1"}, "CronJob": {"v1", "v1beta1"}, "PodTemplate": {"v1"}}
	for range 400 {
		policies := anyPolicies(random, namespaces)
		in := input(t, policies...)
		in.Mirrors = Mirrors(random.IntN(3))
		in.Resources = slices.DeleteFunc(served(), func(r Resource) bool { return versions[r.Kind] == nil })
		in.MutateControllers = []string{"Job", "Deployment", "CronJob"}
		if in.Mirrors != NoMirrors { // mirrors apply to Pods and to these controllers
			mirrors := about([]string{"Pod", "Job", "Deployment", "CronJob"}, named("mirrors"))
			mirrors.FailOpen = in.Mirrors == MirrorsOpen
			policies = append(policies, mirrors)
		}
		c, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		mutating := validating(c.Mutating.Webhooks)
		for _, w := range slices.Concat(c.Validating.Webhooks, mutating) {
			if names[w.Name] {
				t.Fatalf("two webhooks are called %s", w.Name)
			}
			names[w.Name] = true
			if errs := validation.IsFullyQualifiedName(field.NewPath("name"), w.Name); len(errs) > 0 {
				t.Fatal(errs)
			}
		}
		for _, r := range in.Resources {
			for _, namespace := range append(namespaces, "other") {
				want := expected(policies, r, versions[r.Kind], namespace)
				if namespace == "kube-system" || namespace == "quaymaster" {
					want = expectation{}
				}
				for _, operation := range []admission.OperationType{admission.Create, admission.Update, admission.Delete} {
					validates, _ := required(c.Validating.Webhooks, name{r.Group, r.Name}, namespace, operation)
					if reason := want.differs(validates, operation); reason != "" {
						t.Fatalf("%s %s in %s: want %+v, %s:\n%s", operation, r.Kind, namespace, want, reason, strings.Join(lines(c.Validating.Webhooks), "\n"))
					}
					pinned := want
					if r.Kind == "PodTemplate" {
						pinned = expectation{}
					}
					mutates, _ := required(mutating, name{r.Group, r.Name}, namespace, operation)
					if reason := pinned.differs(mutates, operation); reason != "" {
						t.Fatalf("%s %s in %s: to be changed, want %+v, %s:\n%s", operation, r.Kind, namespace, pinned, reason, strings.Join(lines(mutating), "\n"))
					}
				}
			}
		}
	}
}

// TestVersions: a request in a listed version is not converted,
// so that a policy for another version would not be evaluated.
func TestVersions(t *testing.T) {
	foo := func(v string, edits ...edit) *policy.Policy {
		return about([]string{"Foo"}, append([]edit{version(v), named("p" + v)}, edits...)...)
	}
	both := foo("v1")
	both.Targets = append(both.Targets, policy.Target{Group: "*", Version: "v2", Kind: "Foo"})
	tests := []struct {
		reason   string
		policies []*policy.Policy
		want     []string // by namespace: one without policies, shop
		warned   string
	}{
		{"any", []*policy.Policy{foo("*")}, []string{"v1,v1beta1,v2", "v1,v1beta1,v2"}, ""},
		{"one", []*policy.Policy{foo("v1")}, []string{"v1", "v1"}, ""},
		{"one and any: others are converted", []*policy.Policy{foo("v1"), foo("*")}, []string{"v1", "v1"}, ""},
		{"a pattern that means some, and any", []*policy.Policy{foo("v1*"), foo("*")}, []string{"v1,v1beta1", "v1,v1beta1"}, ""},
		{"a pattern, and one that it means", []*policy.Policy{foo("v1*"), foo("v1beta1")}, []string{"v1beta1", "v1beta1"}, ""},
		{"one policy that names two wants both", []*policy.Policy{both, foo("*")}, []string{"v1,v2", "v1,v2"}, ""},
		{"and is asked about the one that another names", []*policy.Policy{both, foo("v2")}, []string{"v2", "v2"}, ""},
		{"two that have none in common", []*policy.Policy{foo("v1"), foo("v2"), foo("*")}, []string{"v1,v2", "v1,v2"}, "ClusterPolicy/pv1 ClusterPolicy/pv2"},
		{"a namespace's policy narrows nothing elsewhere", []*policy.Policy{foo("*"), foo("v2", in("shop"))}, []string{"v1,v1beta1,v2", "v2"}, ""},
		{"nor does it keep the cluster's from being asked at home", []*policy.Policy{foo("v1"), foo("v2", in("shop"))}, []string{"v1", "v1"}, "ClusterPolicy/pv1 Policy/shop/pv2"},
		{"nor where those disagree", []*policy.Policy{foo("v1"), foo("v2"), foo("v2", in("shop"))}, []string{"v1,v2", "v1,v2"}, "ClusterPolicy/pv1 ClusterPolicy/pv2 Policy/shop/pv2"},
		{"two of a namespace", []*policy.Policy{foo("*"), foo("v1", in("shop")), foo("v2", in("shop"))}, []string{"v1,v1beta1,v2", "v1,v2"}, "Policy/shop/pv1 Policy/shop/pv2"},
		{"a namespace alone", []*policy.Policy{foo("v2", in("shop"))}, []string{"", "v2"}, ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := input(t, test.policies...)
			in.Resources = nil
			for _, v := range []string{"v1", "v1beta1", "v2"} {
				in.Resources = append(in.Resources, Resource{Group: "example.io", Version: v, Name: "foos", Kind: "Foo", Namespaced: true})
			}
			c, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			for i, namespace := range []string{"other", "shop"} {
				_, rules := required(c.Validating.Webhooks, name{"example.io", "foos"}, namespace, admission.Create)
				got := ""
				if len(rules) == 1 {
					got = strings.Join(rules[0].APIVersions, ",")
				}
				if got != test.want[i] || len(rules) > 1 {
					t.Errorf("in %s: %d rules ask in %q, want %q", namespace, len(rules), got, test.want[i])
				}
			}
			var warned []string
			for _, w := range c.Warnings {
				warned = append(warned, w.Policy)
			}
			if got := strings.Join(warned, " "); got != test.warned {
				t.Errorf("warned are %q, want %q", got, test.warned)
			}
		})
	}
}

// TestNamesStay: a policy that is added renames no webhook: a request in a namespace that no policy
// names alone has the same webhook as before, unless its settings change.
func TestNamesStay(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(5, 6))
	namespaces := []string{"a", "b", "c"}
	known := regexp.MustCompile(`^(images|images-ignore|fail|ignore|namespaces|namespaces-ignore)(-[0-9]+s)?(-own-[0-9a-f]{8})?(-updates)?\.validate\.quaymaster\.dev$`)
	compared := 0
	for range 300 {
		policies := anyPolicies(random, namespaces)
		last := len(policies) - 1
		before, err := Build(input(t, policies[:last]...))
		if err != nil {
			t.Fatal(err)
		}
		after, err := Build(input(t, policies...))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range after.Validating.Webhooks {
			if !known.MatchString(w.Name) {
				t.Fatalf("%s is no name that docs/gateway.md lists", w.Name)
			}
		}
		for _, r := range served() {
			versions := []string{"v1"}
			if r.Kind == "CronJob" {
				versions = []string{"v1", "v1beta1"}
			}
			for _, operation := range []admission.OperationType{admission.Create, admission.Update} {
				n := name{r.Group, r.Name}
				was, _ := required(before.Validating.Webhooks, n, "other", operation)
				is, _ := required(after.Validating.Webhooks, n, "other", operation)
				old, now := expected(policies[:last], r, versions, "other"), expected(policies, r, versions, "other")
				if len(was) == 0 || len(is) == 0 || old.closed != now.closed || old.outside != now.outside || old.seconds != now.seconds {
					continue
				}
				compared++
				if was[0].Name != is[0].Name {
					t.Fatalf("%s %s: %s became %s with policy %+v", operation, r.Name, was[0].Name, is[0].Name, policies[last])
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d requests were compared", compared)
	}
}

// TestNamesAreTold: every name is built from words that docs/gateway.md explains.
func TestNamesAreTold(t *testing.T) {
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Webhooks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, word := range []string{"images", "images-ignore", "fail", "ignore", "namespaces", "namespaces-ignore", "documents", "records", "objects",
		"-labelled", "-own-", "-not-", "-all", "-updates", mutateSuffix, validateSuffix, shadowSuffix, documentsName} {
		if !strings.Contains(section, "`"+word+"`") {
			t.Errorf("`%s` is not explained", word)
		}
	}
}

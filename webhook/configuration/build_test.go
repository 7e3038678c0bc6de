package configuration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
)

var update = flag.Bool("update", false, "write testdata/*.yaml anew")

func bundle(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// served is what a cluster serves, less what no test needs.
func served() []Resource {
	return []Resource{
		{"", "v1", "pods", "Pod", true, []string{"binding", "ephemeralcontainers", "eviction", "exec", "status"}},
		{"", "v1", "namespaces", "Namespace", false, []string{"finalize", "status"}},
		{"", "v1", "nodes", "Node", false, nil},
		{"", "v1", "events", "Event", true, nil},
		{"", "v1", "configmaps", "ConfigMap", true, nil},
		{"", "v1", "replicationcontrollers", "ReplicationController", true, []string{"scale", "status"}},
		{"", "v1", "podtemplates", "PodTemplate", true, nil},
		{"apps", "v1", "deployments", "Deployment", true, []string{"scale", "status"}},
		{"apps", "v1", "statefulsets", "StatefulSet", true, nil},
		{"apps", "v1", "controllerrevisions", "ControllerRevision", true, nil},
		{"batch", "v1", "cronjobs", "CronJob", true, nil},
		{"batch", "v1beta1", "cronjobs", "CronJob", true, nil},
		{"batch", "v1", "jobs", "Job", true, nil},
		{"coordination.k8s.io", "v1", "leases", "Lease", true, nil},
		{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false, nil},
		{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false, nil},
		{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false, nil},
		{"kyverno.io", "v1", "clusterpolicies", "ClusterPolicy", false, nil},
		{"tekton.dev", "v1", "tasks", "Task", true, nil},
		{"example.com", "v1", "fleets", "Fleet", false, nil},
	}
}

func input(t *testing.T, policies ...*policy.Policy) Input {
	return Input{
		Policies: policies, Resources: served(), CABundle: bundle(t),
		Endpoint: Endpoint{Namespace: "quaymaster", Service: "quaymaster"}, Namespace: "quaymaster", Exclusions: Exclusions{ExcludedNamespaces: []string{"kube-system"}},
	}
}

type edit func(*policy.Policy)

// about returns a policy about kinds of any group and version.
func about(kinds []string, edits ...edit) *policy.Policy {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	for _, kind := range kinds {
		p.Targets = append(p.Targets, policy.Target{Group: "*", Version: "*", Kind: kind})
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func named(name string) edit { return func(p *policy.Policy) { p.Name = name } }
func in(namespace string) edit {
	return func(p *policy.Policy) { p.Kind, p.Namespace = "Policy", namespace }
}
func open(p *policy.Policy)         { p.FailOpen = true }
func audit(p *policy.Policy)        { p.AuditOnly = true }
func broken(p *policy.Policy)       { p.Broken = errors.New("a field is unknown") }
func patience(d time.Duration) edit { return func(p *policy.Policy) { p.Timeout = d } }
func extract(kind, path string) edit {
	return func(p *policy.Policy) { p.Rules = append(p.Rules, looking{kind, path}) }
}
func each(change func(*policy.Target)) edit {
	return func(p *policy.Policy) {
		for i := range p.Targets {
			change(&p.Targets[i])
		}
	}
}
func operations(o ...string) edit  { return each(func(t *policy.Target) { t.Operations = o }) }
func within(n ...string) edit      { return each(func(t *policy.Target) { t.Namespaces = n }) }
func subresource(name string) edit { return each(func(t *policy.Target) { t.Subresource = name }) }
func version(name string) edit     { return each(func(t *policy.Target) { t.Version = name }) }

func pins(kind string) edit {
	return func(p *policy.Policy) { p.Rules = append(p.Rules, pinning{looking{kind, "/spec/image"}}) }
}

// pinning is a rule that pins in the objects of the kind that it names.
type pinning struct{ looking }

func (pinning) PinsNamed() bool                 { return true }
func (pinning) ImagePatterns() ([]string, bool) { return nil, false }
func (p pinning) Targets() []policy.Target {
	return []policy.Target{{Group: "*", Version: "*", Kind: p.kind}}
}

// looking is a rule with an extractor.
type looking struct{ kind, path string }

func (l looking) Name() string { return "looks" }
func (l looking) Extractors(s *policy.Subject) []policy.Extractor {
	if s.Kind != l.kind {
		return nil
	}
	return []policy.Extractor{{Name: "custom", Path: l.path}}
}
func (looking) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{}, nil
}

// summed is the sum in the name of a webhook for single namespaces.
var summed = regexp.MustCompile("(-own|-not)-[0-9a-f]{8,32}")

// lines writes webhooks so that a person can compare them:
// "name [selector]: operations group/versions/resources ...".
func lines(webhooks []admission.ValidatingWebhook) []string {
	var all []string
	for _, w := range webhooks {
		if w.Name == "probe.quaymaster.dev" {
			continue // TestProbe looks at it
		}
		line := summed.ReplaceAllString(strings.TrimSuffix(w.Name, validateSuffix), "$1")
		for _, e := range chosen(w.NamespaceSelector) {
			line += " " + string(e.Operator) + "(" + strings.Join(e.Values, " ") + ")"
		}
		for _, r := range w.Rules {
			line += " | "
			for _, o := range r.Operations {
				line += string(o)[:1]
			}
			line += " " + r.APIGroups[0] + "/" + strings.Join(r.APIVersions, ",") + "/" + strings.Join(r.Resources, ",")
			if *r.Scope != admission.NamespacedScope {
				line += " " + string(*r.Scope)
			}
		}
		all = append(all, line)
	}
	return all
}

// chosen are the requirements of a selector but for that of BreakGlass, which nearly
// all have; see TestBreakGlass.
func chosen(selector *metav1.LabelSelector) []metav1.LabelSelectorRequirement {
	return slices.DeleteFunc(slices.Clone(selector.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool { return r.Key == BreakGlass })
}

const elsewhere = " NotIn(kube-system quaymaster)"

func TestValidating(t *testing.T) {
	pods := []string{"Pod"}
	tests := []struct {
		reason   string
		policies []*policy.Policy
		want     []string
		warnings []string // parts, one for each
	}{
		{"no policy asks for anything", nil, nil, nil},
		{"pods bring the containers that are added later", []*policy.Policy{about(pods)},
			[]string{"images" + elsewhere + " | C /v1/pods",
				"images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"CREATE alone selects no ephemeral containers", []*policy.Policy{about(pods, operations("CREATE"))},
			[]string{"images" + elsewhere + " | C /v1/pods"}, nil},
		{"UPDATE alone selects no new objects", []*policy.Policy{about(pods, operations("UPDATE"))},
			[]string{"images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"resources share a webhook by operation", []*policy.Policy{about(pods, operations("CREATE")), about([]string{"Job"})},
			[]string{"images" + elsewhere + " | C /v1/pods | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"DELETE brings no image", []*policy.Policy{about(pods, operations("DELETE", "CONNECT"))}, nil, nil},
		{"DELETE beside CREATE is left out", []*policy.Policy{about(pods, operations("DELETE", "CREATE"))},
			[]string{"images" + elsewhere + " | C /v1/pods"}, nil},
		{"an open policy does not close", []*policy.Policy{about(pods, open)},
			[]string{"images-ignore" + elsewhere + " | C /v1/pods",
				"images-ignore-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"an audit fails open", []*policy.Policy{about(pods, audit)},
			[]string{"images-ignore" + elsewhere + " | C /v1/pods",
				"images-ignore-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"one closed policy closes, and pods stand in one webhook", []*policy.Policy{about(pods, open, named("a")), about(pods, named("b"))},
			[]string{"images" + elsewhere + " | C /v1/pods",
				"images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"closed for pods and not for ephemeral containers splits them",
			[]*policy.Policy{about(pods, open, named("a")), about(pods, named("b"), operations("CREATE"))},
			[]string{"images" + elsewhere + " | C /v1/pods",
				"images-updates" + elsewhere + " | U /v1/pods", "images-ignore-updates" + elsewhere + " | U /v1/pods/ephemeralcontainers"}, nil},
		{"resources that agree share a webhook, those of one group a rule",
			[]*policy.Policy{about([]string{"Deployment", "StatefulSet", "Job"})},
			[]string{"images" + elsewhere + " | C apps/v1/deployments,statefulsets | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U apps/v1/deployments,statefulsets | U batch/v1/jobs"}, nil},
		{"the most patient policy decides", []*policy.Policy{about(pods, patience(3*time.Second), named("a")), about(pods, patience(20*time.Second), named("b"))},
			[]string{"images-20s" + elsewhere + " | C /v1/pods",
				"images-20s-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"the default timeout is ten seconds", []*policy.Policy{about(pods, patience(3*time.Second), named("a")), about(pods, named("b"))},
			[]string{"images" + elsewhere + " | C /v1/pods",
				"images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"a timeout is rounded up to whole seconds", []*policy.Policy{about([]string{"Job"}, patience(2500*time.Millisecond))},
			[]string{"images-3s" + elsewhere + " | C batch/v1/jobs",
				"images-3s-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"and bounded by 30", []*policy.Policy{about([]string{"Job"}, patience(time.Hour))},
			[]string{"images-30s" + elsewhere + " | C batch/v1/jobs",
				"images-30s-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"all versions that are served", []*policy.Policy{about([]string{"CronJob"})},
			[]string{"images" + elsewhere + " | C batch/v1,v1beta1/cronjobs",
				"images-updates" + elsewhere + " | U batch/v1,v1beta1/cronjobs"}, nil},
		{"the version that is named", []*policy.Policy{about([]string{"CronJob"}, version("v1"))},
			[]string{"images" + elsewhere + " | C batch/v1/cronjobs",
				"images-updates" + elsewhere + " | U batch/v1/cronjobs"}, nil},
		{"a policy of a namespace is asked about there", []*policy.Policy{about(pods, in("shop"))},
			[]string{"images-own In(shop) | C /v1/pods",
				"images-own-updates In(shop) | U /v1/pods,pods/ephemeralcontainers"}, nil},
		{"two of them in both", []*policy.Policy{about([]string{"Job"}, in("shop")), about([]string{"Job"}, in("bank"))},
			[]string{"images-own In(bank shop) | C batch/v1/jobs",
				"images-own-updates In(bank shop) | U batch/v1/jobs"}, nil},
		{"one that matches all namespaces opens it", []*policy.Policy{about([]string{"Job"}, in("shop")), about([]string{"Job"})},
			[]string{"images" + elsewhere + " | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"literal namespaces of a target", []*policy.Policy{about([]string{"Job"}, within("shop", "kube-system"))},
			[]string{"images-own In(shop) | C batch/v1/jobs",
				"images-own-updates In(shop) | U batch/v1/jobs"}, nil},
		{"a pattern cannot be selected by", []*policy.Policy{about([]string{"Job"}, within("shop-*"))},
			[]string{"images" + elsewhere + " | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"only excluded namespaces: nothing to ask", []*policy.Policy{about([]string{"Job"}, in("kube-system"))}, nil, []string{"all its namespaces"}},
		{"a name that no namespace has is left out", []*policy.Policy{about([]string{"Job"}, within("shop", "My Shop"))},
			[]string{"images-own In(shop) | C batch/v1/jobs",
				"images-own-updates In(shop) | U batch/v1/jobs"}, nil},
		{"only such names: nothing to ask", []*policy.Policy{about([]string{"Job"}, within("My Shop"))}, nil, []string{"all its namespaces"}},
		{"a namespaced policy selects no cluster-scoped object", []*policy.Policy{about([]string{"Fleet"}, in("shop"))}, nil, nil},
		{"a resource of the cluster", []*policy.Policy{about([]string{"Fleet"})},
			[]string{"fail" + elsewhere + " | CU example.com/v1/fleets Cluster"}, nil},
		{"a template without spec is asked about at each update", []*policy.Policy{about([]string{"PodTemplate"})},
			[]string{"fail" + elsewhere + " | CU /v1/podtemplates"}, nil},
		{"an extractor outside of spec, too", []*policy.Policy{about([]string{"Job"}, extract("Job", "/metadata/annotations/image"))},
			[]string{"fail" + elsewhere + " | CU batch/v1/jobs"}, nil},
		{"one inside changes nothing", []*policy.Policy{about([]string{"Job"}, extract("Job", "/spec/tool"))},
			[]string{"images" + elsewhere + " | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"* means what runs images", []*policy.Policy{about([]string{"*"}, each(func(t *policy.Target) { t.Subresource = "*" }))},
			[]string{"images" + elsewhere + " | C /v1/pods,replicationcontrollers | C apps/v1/deployments,statefulsets | C batch/v1,v1beta1/cronjobs | C batch/v1/jobs",
				"fail" + elsewhere + " | CU /v1/podtemplates",
				"images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers,replicationcontrollers | U apps/v1/deployments,statefulsets | U batch/v1,v1beta1/cronjobs | U batch/v1/jobs"}, nil},
		{"and what an extractor looks at", []*policy.Policy{about([]string{"Ta*"}, extract("Task", "/spec/steps/*/image"))},
			[]string{"fail" + elsewhere + " | CU tekton.dev/v1/tasks"}, nil},
		{"a custom resource by its name", []*policy.Policy{about([]string{"Task"})},
			[]string{"fail" + elsewhere + " | CU tekton.dev/v1/tasks"}, nil},
		{"never about these", []*policy.Policy{about([]string{"Namespace", "Node", "Event", "Lease", "TokenReview", "ValidatingWebhookConfiguration", "CertificateSigningRequest", "ClusterPolicy"})},
			nil, []string{"CertificateSigningRequest", "ClusterPolicy", "Event", "Lease", "Namespace", "Node", "TokenReview", "ValidatingWebhookConfiguration"}},
		{"nor about these subresources", []*policy.Policy{about(pods, subresource("exec")), about(pods, named("q"), subresource("status"))}, nil, []string{"Pod/exec", "Pod/status"}},
		{"the one subresource by its name", []*policy.Policy{about(pods, subresource("ephemeralcontainers"))},
			[]string{"images-updates" + elsewhere + " | U /v1/pods/ephemeralcontainers"}, nil},
		{"an unknown kind is reported, and the known one selected", []*policy.Policy{about([]string{"Rollout", "Job"})},
			[]string{"images" + elsewhere + " | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, []string{"serves no kind Rollout"}},
		{"a broken policy closes its targets", []*policy.Policy{about([]string{"Job"}, broken)},
			[]string{"images" + elsewhere + " | C batch/v1/jobs",
				"images-updates" + elsewhere + " | U batch/v1/jobs"}, nil},
		{"one that names nothing closes nothing", []*policy.Policy{about(nil, broken)}, nil, []string{"is broken"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			c, err := Build(input(t, test.policies...))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(test.want)
			if got := slices.Sorted(slices.Values(lines(c.Validating.Webhooks))); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if len(c.Warnings) != len(test.warnings) {
				t.Fatalf("got warnings %q, want %q", c.Warnings, test.warnings)
			}
			for i, w := range c.Warnings {
				if !strings.Contains(w.String(), test.warnings[i]) {
					t.Errorf("got warning %q, want %q in it", w, test.warnings[i])
				}
			}
		})
	}
}

// TestExcluded: a policy of excluded namespaces alone is marked; one with a rule about others is not.
func TestExcluded(t *testing.T) {
	mixed := about([]string{"Job"}, within("kube-system"), named("mixed"))
	mixed.Targets = append(mixed.Targets, policy.Target{Group: "*", Version: "*", Kind: "Pod"})
	c, err := Build(input(t,
		about([]string{"Job", "Pod"}, within("kube-system", "quaymaster"), named("system")), about([]string{"Job"}, in("quaymaster"), named("own")),
		mixed, about([]string{"Job"}, within("kube-system", "shop"), named("shop")), about([]string{"Job"}, within("kube-*"), named("pattern")),
		about([]string{"Job"}, named("all")), about(nil, named("none")),
		about([]string{"Job"}, named("labelled"), each(func(t *policy.Target) { t.Labelled = []string{"kube-system"} })),
		about([]string{"Job"}, named("labelled-too"), each(func(t *policy.Target) { t.Labelled = []string{"kube-system", "shop"} })),
	))
	var excluded []string
	for _, w := range c.Warnings {
		if w.Excluded && !slices.Contains(excluded, w.Policy) {
			excluded = append(excluded, w.Policy)
		}
	}
	if err != nil || !slices.Equal(excluded, []string{"ClusterPolicy/labelled", "ClusterPolicy/system", "Policy/quaymaster/own"}) {
		t.Errorf("%q of %q, %v", excluded, c.Warnings, err)
	}
}

func TestMutating(t *testing.T) {
	everything := []string{"Pod", "Deployment", "CronJob", "Task"}
	const pods = "CREATE pods, UPDATE pods, UPDATE pods/ephemeralcontainers"
	tests := []struct {
		reason      string
		controllers []string
		edits       []edit
		onlyPods    bool
		want        string
	}{
		{"pods alone are changed", nil, nil, false, pods},
		{"and the controllers that are asked for", []string{"Deployment"}, nil, false, "CREATE deployments, CREATE pods, UPDATE deployments, UPDATE pods, UPDATE pods/ephemeralcontainers"},
		{"and what a rule names that pins", nil, []edit{pins("Task")}, false, "CREATE pods, CREATE tasks, UPDATE pods, UPDATE pods/ephemeralcontainers"},
		{"unless nothing else may be changed", nil, []edit{pins("Task")}, true, pods},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := input(t, about(everything, test.edits...))
			in.MutateControllers, in.OnlyPods = test.controllers, test.onlyPods
			c, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range c.Mutating.Webhooks {
				for _, r := range w.Rules {
					for _, resource := range r.Resources {
						got = append(got, string(r.Operations[0])+" "+resource)
					}
				}
				if *w.ReinvocationPolicy != admission.IfNeededReinvocationPolicy || !strings.HasSuffix(w.Name, mutateSuffix) || *w.ClientConfig.Service.Path != MutatePath {
					t.Errorf("webhook %s is wrong: %+v", w.Name, w)
				}
			}
			slices.Sort(got)
			if joined := strings.Join(got, ", "); joined != test.want {
				t.Errorf("got %s, want %s", joined, test.want)
			}
		})
	}
}

// TestMirrors: with mirrors Pods are selected at both endpoints, for any policies,
// and fail closed only where that is configured.
func TestMirrors(t *testing.T) {
	const open = "images-ignore" + elsewhere + " | C /v1/pods; images-ignore-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"
	const closed = "images" + elsewhere + " | C /v1/pods; images-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers"
	jobs := about([]string{"Job"})
	tests := []struct {
		reason      string
		mirrors     Mirrors
		policies    []*policy.Policy
		controllers []string
		want        string
	}{
		{"no mirrors", NoMirrors, nil, nil, ""},
		{"mirrors alone", MirrorsOpen, nil, nil, open},
		{"an entry denies", MirrorsClosed, nil, nil, closed},
		{"a policy wants it", MirrorsOpen, []*policy.Policy{about([]string{"Pod"})}, nil, closed},
		{"a policy that fails open does not", MirrorsOpen, []*policy.Policy{about([]string{"Pod"}, func(p *policy.Policy) { p.FailOpen = true })}, nil, open},
		{"an entry that denies closes for a policy that fails open", MirrorsClosed,
			[]*policy.Policy{about([]string{"Pod"}, func(p *policy.Policy) { p.FailOpen = true })}, nil, closed},
		{"a policy on other kinds has nothing to do with it", MirrorsOpen, []*policy.Policy{jobs}, nil,
			"images" + elsewhere + " | C batch/v1/jobs; images-ignore" + elsewhere + " | C /v1/pods; " +
				"images-ignore-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers; images-updates" + elsewhere + " | U batch/v1/jobs"},
		{"controllers that are changed as Pods are", MirrorsOpen, nil, []string{"Deployment"},
			"images-ignore" + elsewhere + " | C /v1/pods | C apps/v1/deployments; " +
				"images-ignore-updates" + elsewhere + " | U /v1/pods,pods/ephemeralcontainers | U apps/v1/deployments"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := input(t, test.policies...)
			in.Mirrors, in.MutateControllers = test.mirrors, test.controllers
			c, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(lines(c.Validating.Webhooks), "; "); got != test.want {
				t.Errorf("to be validated are\n%s\nwant\n%s", got, test.want)
			}
			mutating := validating(c.Mutating.Webhooks)
			for i := range mutating {
				mutating[i].Name = strings.TrimSuffix(mutating[i].Name, mutateSuffix) + validateSuffix
			}
			if got := strings.Join(lines(mutating), "; "); got != test.want && len(test.policies) == 0 {
				t.Errorf("to be mutated are\n%s\nwant\n%s", got, test.want)
			}
			if len(c.Warnings) > 0 {
				t.Errorf("warnings %q", c.Warnings)
			}
		})
	}
}

func full(t *testing.T) Input {
	in := input(t, about([]string{"Pod", "Deployment", "CronJob", "Task"}, named("signed")),
		about([]string{"Job"}, named("patient"), open, patience(25*time.Second)), about([]string{"StatefulSet", "Nothing"}, in("shop")))
	in.Documents = []schema.GroupResource{{Group: "kyverno.io", Resource: "policies"}, {Group: "kyverno.io", Resource: "clusterpolicies"}, {Group: "kyverno.io", Resource: "policyexceptions"}}
	in.Owner = metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "quaymaster", UID: "7b0e"}
	return in
}

func TestGolden(t *testing.T) {
	in := full(t)
	in.BreakGlass = true
	for folder, shadow := range map[string]bool{"testdata": false, "testdata/shadow": true} {
		in.Shadow = shadow
		c, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, folder, c)
	}
}

func golden(t *testing.T, folder string, c Configurations) {
	t.Helper()
	for i := range c.Mutating.Webhooks {
		c.Mutating.Webhooks[i].ClientConfig.CABundle = []byte("authority")
	}
	for i := range c.Validating.Webhooks {
		c.Validating.Webhooks[i].ClientConfig.CABundle = []byte("authority")
	}
	for file, object := range map[string]any{"mutating.yaml": c.Mutating, "validating.yaml": c.Validating} {
		got, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, file)
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs (go test -update writes it):\n%s", file, got)
		}
	}
}

func TestOrderMakesNoDifference(t *testing.T) {
	in := full(t)
	first, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for range 50 {
		in.Policies, in.Resources, in.Documents = shuffled(random, in.Policies), shuffled(random, in.Resources), shuffled(random, in.Documents)
		again, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := yaml.Marshal(again); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("another order gives (%v)\n%s\nand not\n%s", err, got, want)
		}
	}
}

func shuffled[T any](random *mathrand.Rand, list []T) []T {
	list = slices.Clone(list)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		reason string
		break_ func(*Input)
		want   string // empty: accepted
	}{
		{"nothing is wrong", func(*Input) {}, ""},
		{"a URL", func(in *Input) { in.Endpoint = Endpoint{URL: "https://gateway.example:9443"} }, ""},
		{"no authorities", func(in *Input) { in.CABundle = nil }, "contains no certificate"},
		{"authorities that are none", func(in *Input) { in.CABundle = []byte("authority") }, "contains no certificate"},
		{"a private key", func(in *Input) {
			in.CABundle = append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")}), in.CABundle...)
		}, "must not be published"},
		{"a certificate that is none", func(in *Input) { in.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}) }, "CA bundle"},
		{"nowhere to ask", func(in *Input) { in.Endpoint = Endpoint{} }, "endpoint"},
		{"two places to ask", func(in *Input) { in.Endpoint.URL = "https://gateway.example" }, "not both"},
		{"without TLS", func(in *Input) { in.Endpoint = Endpoint{URL: "http://gateway.example"} }, "must be https"},
		{"a port that is none", func(in *Input) { in.Endpoint.Port = 70000 }, "not a valid port"},
		{"discovery has not answered", func(in *Input) { in.Resources = nil }, "not known yet"},
		{"no own namespace", func(in *Input) { in.Namespace = "" }, "not a valid name of a namespace"},
		{"a pattern of namespaces", func(in *Input) { in.ExcludedNamespaces = []string{"kube-*"} }, "not a valid name of a namespace"},
		{"a controller that is none", func(in *Input) { in.MutateControllers = []string{"Task"} }, "not a kind of pod controller"},
		{"all documents", func(in *Input) { in.Documents = []schema.GroupResource{{Group: "*", Resource: "*"}} }, "not a custom resource"},
		{"a choice about mirrors that is none", func(in *Input) { in.Mirrors = MirrorsClosed + 1 }, "not a valid value"},
		{"an owner without UID", func(in *Input) { in.Owner.Name = "quaymaster" }, "UID"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := input(t, about([]string{"Pod"}))
			test.break_(&in)
			_, err := Build(in)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// FuzzBuild gives Build texts that policies may hold, and looks for results that the API
// server would refuse, or resources that must never be selected.
func FuzzBuild(f *testing.F) {
	f.Add("*", "*", "Pod", "", "CREATE", "shop", int64(time.Second))
	f.Add("", "v?", "*", "*", "*", "My Shop", int64(-1))
	f.Add("coordination.k8s.io", "", "Lease", "status", "UPDATE", "*", int64(1)<<62)
	bundle := bundle(f)
	f.Fuzz(func(t *testing.T, group, version, kind, sub, operation, namespace string, timeout int64) {
		p := &policy.Policy{Kind: "ClusterPolicy", Name: "p", Settings: policy.Settings{Timeout: time.Duration(timeout)}, Targets: []policy.Target{
			{Group: group, Version: version, Kind: kind, Subresource: sub, Operations: []string{operation, "UPDATE"}, Namespaces: []string{namespace}},
		}}
		c, err := Build(Input{Policies: []*policy.Policy{p}, Resources: served(), CABundle: bundle, Namespace: "own", Endpoint: Endpoint{URL: "https://gateway.example"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Validating.Webhooks {
			if *w.TimeoutSeconds < minSeconds || *w.TimeoutSeconds > maxSeconds || len(w.Rules) == 0 {
				t.Errorf("%s: %d s, rules %v", w.Name, *w.TimeoutSeconds, w.Rules)
			}
			if reasons := validation.IsDNS1123Subdomain(w.Name); len(reasons) > 0 {
				t.Errorf("name %q: %v", w.Name, reasons)
			}
			for _, value := range w.NamespaceSelector.MatchExpressions[0].Values {
				if reasons := validation.IsDNS1123Label(value); len(reasons) > 0 {
					t.Errorf("namespace %q: %v", value, reasons)
				}
			}
			for _, r := range w.Rules {
				for _, forbidden := range []string{"namespaces", "nodes", "leases", "events", "tokenreviews", "pods/exec", "pods/status"} {
					if slices.Contains(r.Resources, forbidden) {
						t.Errorf("the API server would ask about %s", forbidden)
					}
				}
				if slices.Contains(r.Operations, admission.Delete) || slices.Contains(r.Operations, admission.Connect) {
					t.Errorf("operations %v", r.Operations)
				}
			}
		}
	})
}

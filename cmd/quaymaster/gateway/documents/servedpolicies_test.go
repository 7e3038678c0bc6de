package documents

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/policies"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// serving is a gate by policies about resources of an API server that serves now this,
// now that.
type serving struct {
	*gatetest.Env
	known    *discovery.Discovery
	policies *policies.Policies
	gate     *gate.Gate
	bundle   []byte
	lists    []*metav1.APIResourceList
}

func newServing(t *testing.T) *serving {
	t.Helper()
	s := &serving{Env: verifytest.Must(gatetest.NewEnv())}
	t.Cleanup(s.Close)
	secure := httptest.NewTLSServer(nil)
	s.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	secure.Close()
	log := slog.New(slog.DiscardHandler)
	s.known = discovery.New(func() ([]*metav1.APIResourceList, []schema.GroupVersion, error) { return s.lists, nil, nil }, func() {}, log)
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: engine.NewResources(), Secrets: engine.FileSecrets{Resources: engine.NewResources()}, Kinds: constraint.Later(s.known),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := rollout.NewEffective(nil, log)
	found, err := NewCatalog(config.Configuration{}, compilers, now)
	if err != nil {
		t.Fatal(err)
	}
	state := &gate.Current{}
	state.ReplaceProver(s.Prover)
	s.policies = policies.New(policies.Config{Catalog: found, State: state, Effective: now, Metrics: metrics.New(metrics.Build{}), Log: log})
	s.gate, err = gate.New(gate.Config{Registries: s, State: state})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve has the API server serve pods, and resources of tekton.dev, and asks it, as
// discovery.Discovery does.
func (s *serving) serve(t *testing.T, resources ...metav1.APIResource) {
	t.Helper()
	writable := metav1.Verbs{"create", "update"}
	s.lists = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: writable}}}}
	for _, r := range resources {
		r.Verbs = writable
		s.lists = append(s.lists, &metav1.APIResourceList{GroupVersion: "tekton.dev/v1", APIResources: []metav1.APIResource{r}})
	}
	changed, err := s.known.Refresh()
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		s.policies.Again(namesKinds)
	}
}

func (s *serving) decide(t *testing.T, object string) gate.Outcome {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := workload.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.gate.Decide(t.Context(), gate.Request{Object: parsed})
}

// warnings are those of building the webhook configurations.
func (s *serving) warnings(t *testing.T) []configuration.Warning {
	t.Helper()
	made, err := configuration.Build(configuration.Input{
		Policies: s.policies.Catalog.Snapshot().Set.Policies(), Resources: s.known.Resources(), CABundle: s.bundle,
		Endpoint: configuration.Endpoint{Namespace: "quaymaster", Service: "quaymaster"}, Namespace: "quaymaster",
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Warnings
}

// TestAKindThatGoes: deleting a definition does not affect a policy's other kinds; when the
// definition is back, the policy applies to its kind again.
func TestAKindThatGoes(t *testing.T) {
	s := newServing(t)
	signed, err := s.Signed("web")
	if err != nil {
		t.Fatal(err)
	}
	bare := s.Build("shop/bare", "1", "bare")
	pod := func(label, image string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, labels: {image: %s}}, spec: {containers: [{name: c, image: %q}]}}", label, image)
	}
	task := "{apiVersion: tekton.dev/v1, kind: Task, metadata: {name: a, namespace: shop}, spec: {}}"
	tasks := metav1.APIResource{Name: "tasks", Kind: "Task", Namespaced: true}
	bodies := map[string]string{
		"ImageValidatingPolicy": fmt.Sprintf(`
  matchImageReferences: [{glob: "%s/**"}]
  attestors: [{name: ours, cosign: {key: {data: %q}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}]
  validations:
  - expression: images.containers.map(image, verifyImageSignatures(image, [attestors.ours])).all(n, n > 0)
  - expression: object.kind != 'Task'
`, s.Registry.Host(), s.Signer.PublicPEM()),
		"ValidatingPolicy": "\n  validations: [{expression: \"object.kind == 'Pod' && object.metadata.labels.image == 'signed'\"}]\n",
		"MutatingPolicy": `
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'seen': object.kind}}]"}
`,
	}
	const both, one = `"", tekton.dev`, `tekton.dev`
	for kind, body := range bodies {
		for _, failure := range []string{"Ignore", "Fail"} {
			for _, c := range []struct {
				reason                  string
				groups, resources, more string
				pods                    bool // that the policy is about them
			}{
				{"pods and tasks", both, "pods, tasks", "", true},
				{"tasks alone", one, "tasks", "", false},
				{"a subresource beside", both, "pods, tasks, tasks/status", "", true},
				{"tasks that are excluded by their name", both, "pods, tasks", `
    excludeResourceRules: [{apiGroups: [tekton.dev], apiVersions: [v1], operations: [CREATE], resources: [tasks], resourceNames: [other]}]`, true},
			} {
				t.Run(kind+"/"+failure+"/"+c.reason, func(t *testing.T) {
					text := fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: %s
metadata: {name: signed}
spec:
  failurePolicy: %s
  matchConstraints:
    resourceRules: [{apiGroups: [%s], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%s]}]%s%s`, kind, failure, c.groups, c.resources, c.more, body)
					s.policies.Catalog.Replace("", []catalog.Document{{Key: "a", Source: "a", Text: []byte(text)}})
					s.policies.Current().Republish("")
					for _, step := range []struct {
						reason string
						served []metav1.APIResource
					}{
						{"there", []metav1.APIResource{tasks}}, {"gone", nil}, {"back", []metav1.APIResource{tasks}},
						{"gone again", nil}, {"back with another kind", []metav1.APIResource{{Name: "tasks", Kind: "Toil", Namespaced: true}}},
					} {
						s.serve(t, step.served...)
						entry := s.policies.Catalog.Snapshot().Entries[0]
						if entry.State != catalog.Ours || strings.Contains(entry.Why, "it does not hold for all that it names") != (len(step.served) == 0) {
							t.Errorf("%s: %s, %s", step.reason, entry.State, entry.Why)
						}
						told := slices.ContainsFunc(s.warnings(t), func(w configuration.Warning) bool {
							return strings.Contains(w.Message, "serves no kind tekton.dev/v1/tasks:")
						})
						if told != (len(step.served) == 0) {
							t.Errorf("%s: warned: %t", step.reason, told)
						}
						holds := func(of, object string, about, passes bool) {
							outcome := s.decide(t, object)
							ok := outcome.Result.Admits() && len(outcome.Warnings) == 0
							if kind == "MutatingPolicy" {
								ok = ok && (outcome.Mutations > 0) == about
							} else {
								ok = (outcome.Result == gate.Deny) == (about && !passes) && (ok || about && !passes)
							}
							if !ok {
								t.Errorf("%s: %s: %s, %d mutations, %v %v", step.reason, of, outcome.Result, outcome.Mutations, outcome.Reasons, outcome.Warnings)
							}
						}
						holds("a signed pod", pod("signed", signed.Name), c.pods, true)
						holds("an unsigned pod", pod("unsigned", bare.Name), c.pods, false)
						of := "Task"
						if len(step.served) > 0 {
							of = step.served[0].Kind
						}
						holds("a task", task, len(step.served) > 0 && of == "Task", false)
					}
				})
			}
		}
	}
}

// TestPolicyOfAFutureKind: it is admitted if the kind may be defined later, and a misspelt one is
// refused.
func TestPolicyOfAFutureKind(t *testing.T) {
	s := newServing(t)
	s.serve(t)
	for _, c := range []struct{ reason, groups, resources, refused string }{
		{"pods", `""`, "pods", ""},
		{"a kind that may come", `"", tekton.dev`, "pods, tasks", ""},
		{"pods misspelt", `""`, "podz", "spec.matchConstraints.resourceRules[0].resources[0]: no kind is known"},
		{"misspelt beside a kind that may come", `"", apps`, "pods, deploiments", "resources[1]: no kind is known"},
		{"misspelt in a group of Kubernetes with a domain", "networking.k8s.io", "ingres", "no kind is known"},
		{"in whatever group", `"*"`, "tasks", "no kind is known"},
		{"a kind, and no resource", "tekton.dev", "Task", "is no resource"},
	} {
		text := fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [%s], apiVersions: [v1], operations: [CREATE], resources: [%s]}]
  validations: [{expression: "true"}]
`, c.groups, c.resources)
		err := s.policies.Catalog.Check([]byte(text))
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

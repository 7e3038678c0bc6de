package generate_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
)

// sampleMaps are the ConfigMaps that samples name.
type sampleMaps struct{}

func (sampleMaps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if namespace+"/"+name == "kube-system/nginx-inject-sidecar-default" {
		return map[string]any{"data": map[string]any{"image": "nginx:latest", "certificateDuration": "43800h0m0s", "certificateRenewBefore": "8760h0m0s"}}, nil
	}
	return nil, fmt.Errorf("ConfigMap %s/%s: not found", namespace, name)
}

func sampleSet(t *testing.T, path string) *set.Set {
	t.Helper()
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if root == "" {
		t.Skip("QUAYMASTER_SAMPLES is not set")
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine, Lookup: sampleMaps{}})
	if err != nil {
		t.Fatal(err)
	}
	var list []*policy.Policy
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("kind: ClusterPolicy")) {
			continue
		}
		p, err := compiler.Compile(document, path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	set, err := set.New(list...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestSamplesGenerate asks the policies of other projects that generate.
func TestSamplesGenerate(t *testing.T) {
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: hello-world-namespace}}"
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: app, namespace: shop, labels: {nginx.kyverno.io/inject: "true", app.kubernetes.io/name: app}}, spec: {containers: [{name: app, image: "a:1"}]}}`
	alice := policy.User{Name: "alice", RolesKnown: true}
	for name, test := range map[string]struct {
		path, trigger string
		user          policy.User
		want          []string // kind namespace/name
		in            string   // that stands in the first
	}{
		"a network policy":               {path: "kyverno-tests/best-practices/add-network-policy/add-network-policy.yaml", trigger: namespace, want: []string{"NetworkPolicy hello-world-namespace/default-deny"}, in: "policyTypes:[Ingress Egress]"},
		"a network policy for names":     {path: "kyverno-tests/best-practices/add-networkpolicy-dns/add-networkpolicy-dns.yaml", trigger: namespace, want: []string{"NetworkPolicy hello-world-namespace/allow-dns"}, in: "port:53"},
		"a quota and limits":             {path: "kyverno-tests/best-practices/add-ns-quota/add-ns-quota.yaml", trigger: namespace, want: []string{"ResourceQuota hello-world-namespace/default-resourcequota", "LimitRange hello-world-namespace/default-limitrange"}, in: "requests.memory:16Gi"},
		"a role binding":                 {path: "kyverno-tests/best-practices/add-rolebinding/add-rolebinding.yaml", trigger: namespace, user: alice, want: []string{"RoleBinding hello-world-namespace/alice-admin-binding"}, in: "kyverno.io/user:alice"},
		"no role binding for an admin":   {path: "kyverno-tests/best-practices/add-rolebinding/add-rolebinding.yaml", trigger: namespace, user: policy.User{Name: "root", RolesKnown: true, ClusterRoles: []string{"cluster-admin"}}},
		"a role binding of the deck":     {path: "seed-policies/kubecon/generate-admin-rolebinding.yaml", trigger: namespace, user: alice, want: []string{"RoleBinding hello-world-namespace/alice-admin-binding"}, in: "name:alice"},
		"a certificate":                  {path: "seed-policies/miro/05-sidecar-inject/policy.yaml", trigger: pod, want: []string{"Certificate shop/nginx-app"}, in: "secretName:nginx-app-tls"},
		"no certificate without a label": {path: "seed-policies/miro/05-sidecar-inject/policy.yaml", trigger: strings.Replace(pod, "nginx.kyverno.io/inject", "other", 1)},
		"nothing for other objects":      {path: "kyverno-tests/best-practices/add-network-policy/add-network-policy.yaml", trigger: pod},
	} {
		t.Run(name, func(t *testing.T) {
			set := sampleSet(t, test.path)
			s := subject(t, test.trigger, test.user)
			var got []string
			for _, r := range set.Generate(t.Context(), policy.Case{Subject: s}) {
				if r.Skip != "" || r.Ruling.Result != policy.Pass {
					t.Errorf("%s: %q %v", r.Rule, r.Skip, r.Ruling)
				}
				for _, made := range r.Objects {
					metadata := made.Object["metadata"].(map[string]any)
					got = append(got, fmt.Sprintf("%s %s/%s", made.Object["kind"], metadata["namespace"], metadata["name"]))
					if text := fmt.Sprint(made.Object); len(got) == 1 && !strings.Contains(text, test.in) {
						t.Errorf("%s does not have %s", text, test.in)
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("made %v, want %v", got, test.want)
			}
		})
	}
}

// TestSamplesAlter asks the one that changes other objects.
func TestSamplesAlter(t *testing.T) {
	set := sampleSet(t, "seed-policies/miro/02-keda-prometheus-address/policy.yaml")
	trigger := subject(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: keda-prometheus-serveraddress, namespace: observability}, data: {main: "http://new:9090"}}`, policy.User{})
	results := set.Alterations(t.Context(), trigger, nil)
	if len(results) != 1 || len(results[0].Selections) != 1 || results[0].Selections[0].Kind != "ScaledObject" {
		t.Fatalf("results %+v", results)
	}
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a, namespace: b, annotations: {keda.prometheus.sh/use-central-serveraddress: "true"}}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: "%s"}}, {type: cron, metadata: {}}]}}`
	got := results[0].Alter(t.Context(), results[0].Selections[0], decoded(t, fmt.Sprintf(scaled, "http://old:9090")))
	if want := decoded(t, fmt.Sprintf(scaled, "http://new:9090")); got.Result != policy.Pass || !reflect.DeepEqual(got.Object, want) {
		t.Errorf("%q %v: %v", got.Result, got.Reasons, got.Object)
	}
	other := subject(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: observability}, data: {main: "x"}}`, policy.User{})
	if results := set.Alterations(t.Context(), other, nil); len(results) != 0 {
		t.Errorf("another ConfigMap: %+v", results)
	}
	if set.NeedsRequester(trigger) {
		t.Error("no rule reads the creator of the ConfigMap")
	}
	if set := sampleSet(t, "seed-policies/kubecon/generate-admin-rolebinding.yaml"); !set.NeedsRequester(subject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a}}", policy.User{})) {
		t.Error("a rule reads the creator of the Namespace")
	}
}

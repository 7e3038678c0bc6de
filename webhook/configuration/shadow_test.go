package configuration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// asking returns the webhooks that select a resource's CREATE in a namespace with labels;
// nil labels mean a cluster-scoped object.
func asking(t *testing.T, webhooks []admission.ValidatingWebhook, resource string, of labels.Set) (names []string) {
	t.Helper()
	for _, w := range webhooks {
		selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		if of != nil && !selector.Matches(of) {
			continue
		}
		for _, r := range w.Rules {
			if slices.Contains(r.Resources, resource) && slices.Contains(r.Operations, admission.Create) {
				names = append(names, w.Name)
			}
		}
	}
	return names
}

// TestShadow: each request is asked about by the shadow or by what enforces, by the
// label of its namespace, never by both or by neither; without Shadow the label means
// nothing.
func TestShadow(t *testing.T) {
	in := whole(t)
	plain, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Shadow = true
	made, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	all, webhooks := validating(made.Mutating.Webhooks), made.Validating.Webhooks
	for _, row := range []struct {
		reason, resource, label string
		enforced                bool
	}{
		{"pods", "pods", "", false},
		{"pods where it is cut over", "pods", ModeEnforce, true},
		{"another word", "pods", "enforced", false},
		{"in upper case", "pods", "ENFORCE", false},
		{"the other word", "pods", "shadow", false},
		{"jobs, about which policies fail open", "jobs", "", false},
		{"and where it is cut over", "jobs", ModeEnforce, true},
		{"Namespaces go by their own labels", "namespaces", "", false},
		{"and are cut over by them", "namespaces", ModeEnforce, true},
	} {
		for _, namespace := range []string{"shop", "bank"} {
			own := labels.Set{namespaceLabel: namespace, "include": "true"}
			before := asking(t, plain.Validating.Webhooks, row.resource, own)
			if row.label != "" {
				own[ModeLabel] = row.label
			}
			if after := asking(t, plain.Validating.Webhooks, row.resource, own); !slices.Equal(before, after) || len(after) != 1 {
				t.Errorf("%s: without a shadow %v is asked by, and %v with the label", row.reason, before, after)
			}
			got := asking(t, webhooks, row.resource, own)
			want := shadowSuffix
			if row.enforced {
				want = validateSuffix
			}
			if len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Errorf("%s in %s: asked by %v, want one that ends in %s", row.reason, namespace, got, want)
			}
			if changed := asking(t, all, row.resource, own); len(changed) > 0 != (row.enforced && row.resource != "jobs") {
				t.Errorf("%s in %s: changed by %v", row.reason, namespace, changed)
			}
		}
	}
	// No selector matches a cluster-scoped object: only the shadow selects it.
	if got := asking(t, webhooks, "fleets", nil); len(got) != 1 || !strings.HasSuffix(got[0], shadowSuffix) {
		t.Errorf("an object of the cluster is asked about by %v", got)
	}
	if got := asking(t, all, "fleets", nil); len(got) != 0 {
		t.Errorf("an object of the cluster is changed by %v", got)
	}
}

// TestShadowFailsOpen: a webhook without the cut-over label never fails closed, has a short
// timeout, and leads to endpoints that refuse nothing, for any policies.
func TestShadowFailsOpen(t *testing.T) {
	in := whole(t)
	in.Mirrors, in.Shadow = MirrorsClosed, true
	in.Policies = append(in.Policies, about([]string{"Pod"}, named("patient"), patience(maxSeconds*1e9)))
	made, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	shadows, enforcing := 0, 0
	for _, w := range made.Mutating.Webhooks {
		if *w.ClientConfig.Service.Path != MutatePath || !slices.ContainsFunc(w.NamespaceSelector.MatchExpressions, cutOver) {
			t.Errorf("%s changes objects without the label", w.Name)
		}
	}
	for _, w := range made.Validating.Webhooks {
		path, needs := *w.ClientConfig.Service.Path, slices.ContainsFunc(w.NamespaceSelector.MatchExpressions, cutOver)
		switch path {
		case ShadowPath, ShadowDocumentsPath:
			shadows++
			if needs || *w.FailurePolicy != admission.Ignore || *w.TimeoutSeconds != shadowSeconds {
				t.Errorf("%s: %s, %d s", w.Name, *w.FailurePolicy, *w.TimeoutSeconds)
			}
		default:
			enforcing++
			for _, r := range w.Rules {
				if !needs || *r.Scope != admission.NamespacedScope && !aboutNamespaces(w) {
					t.Errorf("%s enforces without the label: %v", w.Name, r)
				}
			}
		}
	}
	if shadows < 4 || enforcing < 4 {
		t.Errorf("%d webhooks of the shadow and %d that enforce", shadows, enforcing)
	}
}

// cutOver reports whether a requirement is that for namespaces that are cut over.
func cutOver(r metav1.LabelSelectorRequirement) bool {
	return r.Key == ModeLabel && r.Operator == metav1.LabelSelectorOpIn && slices.Equal(r.Values, []string{ModeEnforce})
}

// TestShadowIsBounded: however much namespaces say, both halves are stored.
func TestShadowIsBounded(t *testing.T) {
	all := input(t)
	all.Shadow, all.BreakGlass = true, true
	kinds, named := []string{"Pod", "Deployment", "StatefulSet", "Job", "CronJob", "Task", "ConfigMap"}, [][]string{{"CREATE"}, {"UPDATE"}, {"CREATE", "UPDATE"}}
	for i := range 600 {
		namespace := fmt.Sprintf("tenant-%03d-%s", i, strings.Repeat("x", 50))
		for j, kind := range kinds {
			if (i+j)%2 == 0 {
				all.Policies = append(all.Policies, about([]string{kind}, in(namespace), operations(named[(i+j)%3]...), patience(time.Duration(1+i%9)*time.Second)))
			}
		}
	}
	made, err := Build(all)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(made.Validating)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1536<<10 {
		t.Errorf("%d bytes in %d webhooks, more than the API server stores", len(text), len(made.Validating.Webhooks))
	}
}

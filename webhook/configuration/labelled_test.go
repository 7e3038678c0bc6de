package configuration

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// TestLabelledNamespaces: what only labelled namespaces want is asked about there
// alone, and what others want as well is asked about everywhere.
func TestLabelledNamespaces(t *testing.T) {
	optIn := func(p *policy.Policy) { p.Kind = "ClusterImagePolicy" }
	pods, jobs := []string{"Pod"}, []string{"Job"}
	const labelled = "images-labelled-updates" + elsewhere + " include=true"
	for _, c := range []struct {
		reason   string
		policies []*policy.Policy
		mirrors  Mirrors
		want     []string // for UPDATE
	}{
		{"labelled policies alone", []*policy.Policy{about(pods, optIn)}, NoMirrors, []string{labelled}},
		{"one that is not", []*policy.Policy{about(pods, optIn), about(pods)}, NoMirrors, []string{"images-updates" + elsewhere}},
		{"one on another resource", []*policy.Policy{about(pods, optIn), about(jobs)}, NoMirrors, []string{"images-updates" + elsewhere, labelled}},
		{"one of a namespace", []*policy.Policy{about(pods, optIn), about(pods, in("shop"))}, NoMirrors,
			[]string{"images-own-updates In(shop)", "images-labelled-updates NotIn(kube-system quaymaster shop) include=true"}},
		{"mirrors, which are for all", []*policy.Policy{about(pods, optIn)}, MirrorsOpen, []string{"images-updates" + elsewhere}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			in := input(t, c.policies...)
			in.Mirrors = c.mirrors
			in.Labelled = Labelled{Label: "include", Value: "true", Is: func(p *policy.Policy) bool { return p.Kind == "ClusterImagePolicy" }}
			made, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range made.Validating.Webhooks {
				if strings.Contains(w.Name, "-updates.") {
					got = append(got, selected(w))
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestPolicyWithoutTargets: a policy for other things than objects of the API server widens
// nothing.
func TestPolicyWithoutTargets(t *testing.T) {
	pods, documents := about([]string{"Pod"}), about(nil, named("documents"), extract("", "/stages/*/from"))
	in := input(t, pods)
	without, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Policies = []*policy.Policy{pods, documents}
	if beside, err := Build(in); err != nil || !reflect.DeepEqual(without, beside) {
		t.Errorf("%v: the configurations differ", err)
	}
	in.Policies = []*policy.Policy{documents}
	if alone, err := Build(in); err != nil || len(alone.Mutating.Webhooks) > 0 || len(alone.Warnings) > 0 {
		t.Errorf("%v: %d webhooks, %v", err, len(alone.Mutating.Webhooks), alone.Warnings)
	}
}

// selected is a webhook's name and which namespaces it selects.
func selected(w admission.ValidatingWebhook) string {
	name := summed.ReplaceAllString(strings.TrimSuffix(w.Name, validateSuffix), "$1")
	for _, e := range chosen(w.NamespaceSelector) {
		name += " " + string(e.Operator) + "(" + strings.Join(e.Values, " ") + ")"
	}
	for label, value := range w.NamespaceSelector.MatchLabels {
		name += " " + label + "=" + value
	}
	return name
}

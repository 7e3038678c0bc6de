package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// pruning is a definition as another engine may ship it: its schema knows rules,
// and drops every field that it does not know.
const pruning = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: policies.kyverno.io}
spec:
  group: kyverno.io
  scope: Namespaced
  names: {plural: policies, singular: policy, kind: Policy, listKind: PolicyList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {rules: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// TestDefinitions: the gateway runs with those kinds of policies that there are,
// and takes up those that come.
func TestDefinitions(t *testing.T) {
	s := unguarded(t, "definitions")
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	resource := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	remove := func(ctx context.Context, names ...string) {
		for _, name := range names {
			_ = resource.Delete(ctx, name, meta.DeleteOptions{})
		}
		eventually(t, func(ctx context.Context) error {
			for _, name := range names {
				if _, err := resource.Get(ctx, name, meta.GetOptions{}); !apierrors.IsNotFound(err) {
					return errors.Join(fmt.Errorf("the definition of %s is still there", name), err)
				}
			}
			return nil
		})
	}
	all := []string{
		"cleanuppolicies.kyverno.io", "clustercleanuppolicies.kyverno.io",
		"clusterimagepolicies.policy.sigstore.dev", "clusterpolicies.kyverno.io", "deletingpolicies.policies.kyverno.io",
		"generatingpolicies.policies.kyverno.io", "globalcontextentries.kyverno.io", "imageoverrides.quaymaster.dev",
		"imagevalidatingpolicies.policies.kyverno.io", "mutatingpolicies.policies.kyverno.io",
		"namespaceddeletingpolicies.policies.kyverno.io", "namespacedgeneratingpolicies.policies.kyverno.io", "namespacedimagevalidatingpolicies.policies.kyverno.io",
		"namespacedmutatingpolicies.policies.kyverno.io", "namespacedvalidatingpolicies.policies.kyverno.io", "policies.kyverno.io",
		"policyexceptions.kyverno.io", "policyexceptions.policies.kyverno.io", "registrymirrors.quaymaster.dev", "trustroots.policy.sigstore.dev",
		"validatingpolicies.policies.kyverno.io",
	}
	remove(t.Context(), all...)
	s.endLead(t)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	bare := s.env.Unsigned("shop/bare", "1.0")
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	must(t, err)
	if watched := s.watched(t); len(watched) != 0 {
		t.Errorf("without definitions it watches %v", watched)
	}

	must(t, s.plane.ApplyYAML(t.Context(), pruning))
	s.awaitWatched(t, "policies.kyverno.io")
	if pruned := s.pruned(t); !slices.Equal(pruned, []string{"policies.kyverno.io"}) {
		t.Errorf("it warns that fields are lost of %v", pruned)
	}
	remove(t.Context(), "policies.kyverno.io")

	_, err = s.plane.Install(t.Context())
	must(t, err)
	s.awaitWatched(t, all...)
	s.enforce(t, env.Policy{Name: "definitions", Namespaces: []string{s.namespace}})
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image, once there are policies", err, "unsigned")
	if pruned := s.pruned(t); len(pruned) != 1 {
		t.Errorf("it warns of definitions that keep every field: %v", pruned)
	}
}

// watched returns the kinds that the gateway logs as watched.
func (s *scene) watched(t *testing.T) []string {
	t.Helper()
	lines, err := s.gateway.Lines()
	must(t, err)
	kinds := map[string]bool{}
	for _, line := range lines {
		if line["msg"] == "custom resource" {
			kinds[fmt.Sprint(line["resource"])] = line["watched"] == true
		}
	}
	var watched []string
	for kind, is := range kinds {
		if is {
			watched = append(watched, kind)
		}
	}
	slices.Sort(watched)
	return watched
}

func (s *scene) awaitWatched(t *testing.T, kinds ...string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if watched := s.watched(t); !slices.Equal(watched, kinds) {
			return fmt.Errorf("it watches %v, want %v", watched, kinds)
		}
		return nil
	})
}

// pruned returns the kinds of which the gateway warned that fields are lost.
func (s *scene) pruned(t *testing.T) []string {
	t.Helper()
	lines, err := s.gateway.Lines()
	must(t, err)
	var kinds []string
	for _, line := range lines {
		if text, _ := line["msg"].(string); line["level"] == "WARN" && strings.Contains(text, "drops unknown fields") && strings.Contains(fmt.Sprint(line["below"]), "spec") {
			kinds = append(kinds, fmt.Sprint(line["resource"]))
		}
	}
	return kinds
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

const dinghyDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dinghies.boats.example}
spec:
  group: boats.example
  scope: Namespaced
  names: {plural: dinghies, singular: dinghy, kind: Dinghy, listKind: DinghyList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestLateKind: a policy may name a kind that is yet to be installed; it is asked
// about from then on.
func TestLateKind(t *testing.T) {
	s := guard(t, "late-kind", gateway.Configuration{})
	text, err := s.env.YAML(env.Policy{
		Name: "late-kind", Kinds: []string{"Dinghy"}, Namespaces: []string{s.namespace}, Rule: audited(),
		Extractors: map[string]any{"Dinghy": []any{map[string]any{"path": "/spec/ship"}}},
	})
	must(t, err)
	s.put(t, text)
	s.checkStates(t, 1, 0, 0)
	eventually(t, func(context.Context) error {
		for _, line := range s.logged(t, "the API server is not asked in the way that policies say") {
			if message := fmt.Sprint(line["message"]); line["policy"] == "ClusterPolicy/late-kind" && strings.Contains(message, "serves no kind Dinghy") {
				return nil
			}
		}
		return fmt.Errorf("the log does not say that there is no such kind yet")
	})
	if rules := s.asked(t); strings.Contains(rules, "dinghies") {
		t.Errorf("the webhooks have %s before there are any", rules)
	}

	s.removeDefinition(t, "dinghies.boats.example")
	must(t, s.plane.ApplyYAML(t.Context(), dinghyDefinition))
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	dinghies := client.Resource(schema.GroupVersionResource{Group: "boats.example", Version: "v1", Resource: "dinghies"}).Namespace(s.namespace)
	create := func(ctx context.Context, image string) error {
		_, err := dinghies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "boats.example/v1", "kind": "Dinghy", "metadata": map[string]any{"name": "late"}, "spec": map[string]any{"ship": image},
		}}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		return err
	}
	signed, err := s.env.Signed("shop/ship", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/wreck", "1.0")
	eventually(t, func(ctx context.Context) error {
		if err := create(ctx, bare.Name); err == nil {
			return fmt.Errorf("an unsigned image is admitted, while asked about are %s", s.asked(t))
		}
		return nil
	})
	denied(t, "an unsigned image in a kind that came late", create(t.Context(), bare.Name), "unsigned")
	if err := create(t.Context(), signed.Name); err != nil {
		t.Errorf("a signed image in it: %v", err)
	}
}

// logged returns the log's lines with a message.
func (s *scene) logged(t *testing.T, message string) []map[string]any {
	t.Helper()
	lines, err := s.gateway.Lines()
	must(t, err)
	var found []map[string]any
	for _, line := range lines {
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

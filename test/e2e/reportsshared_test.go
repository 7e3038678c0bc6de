package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestReportsShared: a workload's report of one replica, in parts, is continued by another;
// additions by other writers stay, their damage is repaired, and another writer's report of
// the same object under its UID is left as it is.
func TestReportsShared(t *testing.T) {
	const policies = 3
	client := define(t, plane(t))
	s := unguarded(t, "reports-shared")
	replicas := s.replicas(t, 2, func(c *gateway.Configuration) {
		c.Scan.Disabled = true // what a replica has not heard of is to come from the report
		c.Reports.MaxResults = 2
	})
	s.gateway = replicas[0]
	for i := range policies {
		s.put(t, labelled(fmt.Sprint("shared-", i), "reports-shared"))
	}
	s.gateway = replicas[1]
	eventually(t, func(context.Context) error {
		if n, err := s.documents(); err != nil || n < policies {
			return fmt.Errorf("the other replica has %d documents: %w", n, err)
		}
		return nil
	})
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}}) // until the API server asks
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	made, err := s.client.AppsV1().Deployments(s.namespace).Create(t.Context(), deployment("web", signed.Name, 8, nil), meta.CreateOptions{})
	must(t, err)
	reports := client.Resource(policyReports).Namespace(s.namespace)
	name := "quaymaster-" + string(made.UID)
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
		"metadata": map[string]any{"name": string(made.UID), "labels": map[string]any{"app.kubernetes.io/managed-by": "kyverno"}},
	}}
	theirs, err = reports.Create(t.Context(), theirs, meta.CreateOptions{})
	must(t, err)

	// awaitShared waits until the pods' result for each policy is in the report once.
	awaitShared := func() {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			all, err := reportsIn(ctx, client, policyReports, s.namespace)
			if err != nil {
				return err
			}
			shared := map[string]int{}
			for at, r := range all {
				if !strings.HasPrefix(at, name) || len(r.Results) > 2 {
					t.Errorf("the report %s has %d results", at, len(r.Results))
				}
				for _, e := range r.Results {
					if e.Rule == "team" && (len(e.Resources) > 0 || e.Result != "fail") {
						t.Errorf("a pod has another result: %+v", e)
					}
					if e.Rule == "team" {
						shared[e.Policy]++
					}
				}
			}
			if len(all) < 2 || len(shared) != policies {
				return fmt.Errorf("%d parts, and pods say %v", len(all), shared)
			}
			return nil
		})
	}
	awaitShared()
	_, err = reports.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"blue"}},"results":[]}`), meta.PatchOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error { // a report can be read before its writer counts it
		for _, each := range replicas { // the API server keeps its connection to one of them
			samples, err := each.Metrics(ctx)
			if err != nil {
				return err
			}
			if gateway.Sum(samples, "quaymaster_report_writes_total") > 0 {
				each.Kill()
				return nil
			}
		}
		return errors.New("the report that was written is not counted")
	})
	eventually(t, func(ctx context.Context) error {
		_, err := s.client.AppsV1().Deployments(s.namespace).Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":16}}`), meta.PatchOptions{})
		return err
	})
	awaitShared()
	kept, err := reports.Get(t.Context(), name, meta.GetOptions{})
	must(t, err)
	if kept.GetLabels()["team"] != "blue" {
		t.Errorf("what others added is gone: %v", kept.GetLabels())
	}
	beside, err := reports.Get(t.Context(), theirs.GetName(), meta.GetOptions{})
	must(t, err)
	if beside.GetResourceVersion() != theirs.GetResourceVersion() {
		t.Errorf("another writer's report was written over: %v", beside.Object)
	}
}

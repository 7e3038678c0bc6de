package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// The APIs of reports.
var (
	policyReports = schema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}
	openReports   = schema.GroupVersionResource{Group: "openreports.io", Version: "v1alpha1", Resource: "reports"}
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// define installs the definitions of reports until the test ends.
func define(t *testing.T, on *controlplane.ControlPlane) dynamic.Interface {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "reports.yaml"))
	must(t, err, on.ApplyYAML(t.Context(), string(text)))
	client, err := dynamic.NewForConfig(on.Admin())
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), awaitTimeout)
		defer cancel()
		for _, name := range []string{"policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io", "reports.openreports.io", "clusterreports.openreports.io"} {
			must(t, process.Eventually(ctx, func(ctx context.Context) error { // the next test makes it anew
				if err := client.Resource(definitions).Delete(ctx, name, meta.DeleteOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is still there: %v", name, err)
				}
				return nil
			}))
		}
	})
	return client
}

// entry has the fields of a result that tests read.
type entry struct {
	Source, Policy, Rule, Category, Severity, Result, Message string
	Scored                                                    bool
	Properties                                                map[string]string
	Resources                                                 []core.ObjectReference
	Timestamp                                                 struct{ Seconds, Nanos int64 }
}

// read has the fields of a report that tests read.
type read struct {
	meta.ObjectMeta `json:"metadata"`

	Scope   *core.ObjectReference
	Summary map[string]int
	Results []entry
}

// reportsIn returns the reports of a namespace that the gateway made, by name.
func reportsIn(ctx context.Context, client dynamic.Interface, api schema.GroupVersionResource, namespace string) (map[string]read, error) {
	list, err := client.Resource(api).Namespace(namespace).List(ctx, meta.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=quaymaster"})
	if err != nil {
		return nil, err
	}
	found := map[string]read{}
	for i := range list.Items {
		var r read
		text, err := list.Items[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		found[r.Name] = r
	}
	return found, nil
}

// owned returns the one report that an object owns.
func owned(all map[string]read, uid string) (read, error) {
	for _, r := range all {
		if len(r.OwnerReferences) == 1 && string(r.OwnerReferences[0].UID) == uid {
			return r, nil
		}
	}
	return read{}, fmt.Errorf("no report is owned by %s: there are %v", uid, slices.Collect(maps.Keys(all)))
}

// labelled is a policy that requires a label, and only audits.
func labelled(name, namespace string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: %[1]s
  annotations:
    policies.kyverno.io/category: Labels
    policies.kyverno.io/severity: medium
spec:
  validationFailureAction: Audit
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod], namespaces: [%[2]s]}}]}
      validate:
        message: the label team is required
        pattern: {metadata: {labels: {team: "?*"}}}
`, name, namespace)
}

// want waits for a report that is as it should be.
func want(t *testing.T, client dynamic.Interface, namespace, uid string, check func(read) error) {
	t.Helper()
	for _, api := range []schema.GroupVersionResource{policyReports, openReports} {
		var last error
		ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
		err := process.Eventually(ctx, func(ctx context.Context) error {
			all, err := reportsIn(ctx, client, api, namespace)
			if err != nil {
				return err
			}
			r, err := owned(all, uid)
			if err == nil {
				err = check(r)
			}
			last = err
			return err
		})
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", api.Group, last)
		}
	}
}

func deployment(name, image string, replicas int32, labels map[string]string) *apps.Deployment {
	all := map[string]string{"app": name}
	d := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &meta.LabelSelector{MatchLabels: map[string]string{"app": name}}
	maps.Copy(all, labels)
	d.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: all}, Spec: pod("", image).Spec}
	return d
}

// TestReports: an admission is in reports of both APIs, which are deleted with their objects;
// a denial or a dry run leaves none.
func TestReports(t *testing.T) {
	c := gateway.Configuration{}
	c.Reports.APIs = &[]string{"policyreport", "openreports"}
	c.Scan.Disabled = true // the results of admission are counted
	client := define(t, plane(t))
	s := guard(t, "reports", c)
	s.enforce(t, env.Policy{Name: "reports-signed", Namespaces: []string{"reports"}})
	s.put(t, labelled("reports-labels", "reports"))
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	_, err = s.create(t, pod("denied", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	_, err = s.dryRun(t.Context(), pod("tried", signed.Name))
	must(t, err)
	lone, err := s.create(t, pod("lone", signed.Name))
	must(t, err)
	deployments := s.client.AppsV1().Deployments("reports")
	made, err := deployments.Create(t.Context(), deployment("web", signed.Name, 3, nil), meta.CreateOptions{})
	must(t, err)

	want(t, client, "reports", string(lone.UID), func(r read) error { return s.checkLone(r, lone, signed.Manifest.Digest) })
	want(t, client, "reports", string(made.UID), func(r read) error {
		if r.Scope == nil || r.Scope.Kind != "Deployment" || r.Scope.Name != "web" || string(r.Scope.UID) != string(made.UID) {
			return fmt.Errorf("the scope is %v", r.Scope)
		}
		if r.Summary["fail"] == 0 || r.Summary["pass"] == 0 || len(r.Results) > 6 {
			return fmt.Errorf("the summary is %v of %d results, %v", r.Summary, len(r.Results), r.Results)
		}
		return nil
	})
	for _, api := range []schema.GroupVersionResource{policyReports, openReports} {
		all, err := reportsIn(t.Context(), client, api, "reports")
		must(t, err)
		if len(all) != 2 {
			t.Errorf("%s: %d reports, want those of the pod and of the Deployment: %v", api.Group, len(all), all)
		}
	}
	settled := s.versions(t, client)
	s.restate(t, lone)
	if now := s.versions(t, client); !maps.Equal(settled, now) {
		t.Errorf("what changes nothing was written: %v before, %v now", settled, now)
	}

	background := meta.DeletePropagationBackground
	must(t, deployments.Delete(t.Context(), "web", meta.DeleteOptions{PropagationPolicy: &background}), s.client.CoreV1().Pods("reports").Delete(t.Context(), "lone", meta.DeleteOptions{}))
	eventually(t, func(ctx context.Context) error {
		var errs []error
		for _, api := range []schema.GroupVersionResource{policyReports, openReports} {
			all, err := reportsIn(ctx, client, api, "reports")
			if err == nil && len(all) > 0 {
				err = fmt.Errorf("%s: %d reports are left", api.Group, len(all))
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// checkLone checks the report of a pod of its own.
func (s *scene) checkLone(r read, lone *core.Pod, digest string) error {
	if r.Scope == nil || r.Scope.Kind != "Pod" || r.Scope.Name != "lone" || r.Scope.APIVersion != "v1" || r.Scope.Namespace != "reports" || r.Scope.UID != lone.UID {
		return fmt.Errorf("the scope is %v", r.Scope)
	}
	for _, status := range []string{"pass", "fail", "warn", "error", "skip"} {
		if _, ok := r.Summary[status]; !ok {
			return fmt.Errorf("the summary lacks %s: %v", status, r.Summary)
		}
	}
	if len(r.Results) != 2 || r.Summary["pass"] != 1 || r.Summary["fail"] != 1 {
		return fmt.Errorf("results %v, summary %v", r.Results, r.Summary)
	}
	for _, e := range r.Results {
		if e.Source != "quaymaster" || e.Timestamp.Seconds == 0 || !e.Scored || e.Properties["policyHash"] == "" || e.Properties["process"] == "" {
			return fmt.Errorf("the result %+v", e)
		}
		switch e.Policy {
		case "reports-labels":
			if e.Rule != "team" || e.Result != "fail" || e.Category != "Labels" || e.Severity != "medium" || !strings.Contains(e.Message, "label team is required") {
				return fmt.Errorf("the result %+v", e)
			}
		case "reports-signed":
			if e.Rule != "signed" || e.Result != "pass" || e.Properties["container"] != "c0" || e.Properties["digest"] != digest || e.Properties["signer"] == "" || e.Properties["evidence"] == "" {
				return fmt.Errorf("the result %+v", e)
			}
		default:
			return fmt.Errorf("a result of %s", e.Policy)
		}
	}
	return nil
}

// versions returns the resource versions of all reports.
func (s *scene) versions(t *testing.T, client dynamic.Interface) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, api := range []schema.GroupVersionResource{policyReports, openReports} {
		all, err := reportsIn(t.Context(), client, api, s.namespace)
		must(t, err)
		for name, r := range all {
			found[api.Group+"/"+name] = r.ResourceVersion
		}
	}
	return found
}

// restate triggers the same result again, and returns when the gateway has processed it.
func (s *scene) restate(t *testing.T, lone *core.Pod) {
	t.Helper()
	before := s.looked(t)
	_, err := s.client.AppsV1().Deployments(s.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), meta.PatchOptions{})
	must(t, err)
	_, err = s.client.CoreV1().Pods(s.namespace).Patch(t.Context(), lone.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"new"}}}`), meta.PatchOptions{})
	must(t, err)
	eventually(t, func(context.Context) error {
		if now := s.looked(t); now < before+2 { // the Deployment's in two APIs
			return fmt.Errorf("%v reports were looked at, %v before", now, before)
		}
		return nil
	})
}

// looked is how many reports the gateway found to say so already.
func (s *scene) looked(t *testing.T) float64 {
	t.Helper()
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	return gateway.Sum(samples, "quaymaster_report_writes_total", "result", "unchanged")
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// othersRights are the rights of the gateway for rules about ConfigMaps. There are none for Secrets.
const othersRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: others}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: others}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: others}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// othersPolicy writes a policy with a rule for ConfigMaps of a name in others.
func othersPolicy(name, labels, match, rule string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s, labels: {%s}}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap], names: ["%s"], namespaces: [others]}}]}
      preconditions: {all: [{key: "{{ request.object.metadata.labels.skip || '' }}", operator: Equals, value: ""}]}
      %s
`, name, labels, match, rule)
}

// othersLines are the lines of an object's report, as "policy result", in order.
func othersLines(r read) []string {
	var lines []string
	for _, one := range r.Results {
		lines = append(lines, one.Policy+" "+one.Result)
	}
	slices.Sort(lines)
	return lines
}

// TestReportsOfOtherObjects: results of generate rules are about their triggers, those of
// mutate-existing rules about their targets, and those of mutate rules are there from the creation on.
// A rule that failed is never reported as passed, one that does not match has no result, and a policy
// with reports disabled has none.
func TestReportsOfOtherObjects(t *testing.T) {
	c := gateway.Configuration{}
	c.Reports.APIs = &[]string{"policyreport", "openreports"}
	c.Scan.Disabled = true // all results are those of admission and of the background
	client := define(t, plane(t))
	must(t, plane(t).Namespace(t.Context(), "others"), plane(t).ApplyYAML(t.Context(), othersRights))
	s := guard(t, "others", c)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "others", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "others", meta.DeleteOptions{})
	})
	const generate = `generate: {apiVersion: v1, kind: %s, name: "made-{{request.object.metadata.name}}", namespace: others, synchronize: true, data: {}}`
	s.put(t, othersPolicy("others-made", "", "trigger*", fmt.Sprintf(generate, "ConfigMap")))
	s.put(t, othersPolicy("others-forbidden", "", "trigger*", fmt.Sprintf(generate, "Secret")))
	s.put(t, othersPolicy("others-silent", `reports.kyverno.io/disabled: ""`, "trigger*", strings.Replace(fmt.Sprintf(generate, "ConfigMap"), "made-", "silent-", 1)))
	s.put(t, othersPolicy("others-altered", "", "trigger*",
		`mutate: {targets: [{apiVersion: v1, kind: ConfigMap, name: target, namespace: others}], patchStrategicMerge: {data: {a: altered}}}`))
	// The validating call brings the UID of a new object, by which the results of its mutation are reported.
	s.put(t, othersPolicy("others-validated", "", "born*", `validate: {pattern: {metadata: {name: "born*"}}}`))
	s.put(t, othersPolicy("others-mutated", "", "born*", `mutate: {patchStrategicMerge: {data: {b: mutated}}}`))

	made := map[string]*core.ConfigMap{}
	create := func(name string, labels map[string]string) {
		t.Helper()
		one, err := s.client.CoreV1().ConfigMaps("others").Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}, meta.CreateOptions{})
		must(t, err)
		made[name] = one
	}
	eventually(t, func(ctx context.Context) error { // until the webhooks match
		probe := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "born-probe"}}
		got, err := s.client.CoreV1().ConfigMaps("others").Create(ctx, probe, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil && got.Data["b"] != "mutated" {
			err = errors.New("the mutation rule is not in force")
		}
		return err
	})
	create("target", nil)
	create("bystander", nil)
	create("trigger", nil)
	create("trigger-skipped", map[string]string{"skip": "yes"})
	create("born", nil)
	create("born-skipped", map[string]string{"skip": "yes"})
	for name, lines := range map[string][]string{
		"target":          {"others-altered pass"},
		"trigger":         {"others-altered pass", "others-forbidden error", "others-made pass"},
		"trigger-skipped": {"others-altered skip", "others-forbidden skip", "others-made skip"},
		"born":            {"others-mutated pass", "others-validated pass"},
		"born-skipped":    {"others-mutated skip", "others-validated skip"},
	} {
		want(t, client, "others", string(made[name].UID), func(r read) error {
			if got := othersLines(r); !slices.Equal(got, lines) {
				return fmt.Errorf("the report of %s has %q, want %q", name, got, lines)
			}
			for _, one := range r.Results {
				named := one.Properties["generated-resources"]
				if one.Policy == "others-made" && one.Result == "pass" && named != "/v1, Kind=ConfigMap Name=made-trigger Namespace=others" {
					return fmt.Errorf("the generated objects are %q", named)
				}
			}
			return nil
		})
	}
	all, err := reportsIn(t.Context(), client, policyReports, "others")
	must(t, err)
	if r, err := owned(all, string(made["bystander"].UID)); err == nil {
		t.Errorf("no rule matches it, and its report has %v", r.Results)
	}
	must(t, plane(t).ApplyYAML(t.Context(), strings.Replace(othersRights, "[configmaps]", "[configmaps, secrets]", 1)))
	want(t, client, "others", string(made["trigger"].UID), func(r read) error {
		if got, want := othersLines(r), []string{"others-altered pass", "others-forbidden pass", "others-made pass"}; !slices.Equal(got, want) {
			return fmt.Errorf("with the right, the report has %q, want %q", got, want)
		}
		return nil
	})
}

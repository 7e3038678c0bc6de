package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// byVersion deny autoscalers by a field that version v1 alone has.
const byVersion = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: by-version}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [autoscaling], apiVersions: [v1], operations: [CREATE], resources: [horizontalpodautoscalers]}]
  validations:
    - expression: "!has(object.spec.targetCPUUtilizationPercentage) || object.spec.targetCPUUtilizationPercentage <= 90"
      message: at most 90
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: by-version-too}
spec:
  background: false
  rules:
    - name: at-least-10
      match: {any: [{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler], operations: [CREATE]}}]}
      validate:
        failureAction: Enforce
        message: at least 10
        deny: {conditions: {all: [{key: "{{ request.object.spec.targetCPUUtilizationPercentage || ` + "`50`" + ` }}", operator: LessThan, value: 10}]}}
`

// anotherVersion denies by the other version, so that no version is common to all policies.
const anotherVersion = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: another-version}
spec:
  background: false
  rules:
    - name: never
      match: {any: [{resources: {kinds: [autoscaling/v2/HorizontalPodAutoscaler], names: [none-*], operations: [CREATE]}}]}
      validate: {failureAction: Enforce, message: never, deny: {}}
`

// TestConvertedVersions: the API server converts an object to the version that a policy
// names; where policies name different ones, a rule for another version is not evaluated on
// the object as it came.
func TestConvertedVersions(t *testing.T) {
	s := guard(t, "converted", gateway.Configuration{})
	for text := range strings.SplitSeq(byVersion, "---\n") {
		s.put(t, text)
	}
	s.awaitReady(t, "by-version-too")
	eventually(t, func(ctx context.Context) error {
		if err := s.autoscale(ctx, "autoscaling/v2", 95); err == nil {
			return fmt.Errorf("95%% is admitted, while asked about are %s", s.asked(t))
		}
		return nil
	})
	for _, row := range []struct {
		percent int32
		want    string // in the refusal; empty: admitted
	}{{95, "at most 90"}, {5, "at least 10"}, {50, ""}} {
		for _, version := range []string{"autoscaling/v1", "autoscaling/v2"} {
			err := s.autoscale(t.Context(), version, row.percent)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%d%% in %s: %v, want %q", row.percent, version, err, row.want)
			}
		}
	}
	s.put(t, anotherVersion)
	s.awaitReady(t, "another-version")
	eventually(t, func(ctx context.Context) error {
		if err := s.autoscale(ctx, "autoscaling/v2", 50); err == nil || !strings.Contains(err.Error(), "version v1") {
			return fmt.Errorf("not converted: %v, while asked about are %s", err, s.asked(t))
		}
		return nil
	})
}

// autoscale creates an autoscaler in a dry run.
func (s *scene) autoscale(ctx context.Context, version string, percent int32) error {
	dry := meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	name := meta.ObjectMeta{Name: fmt.Sprintf("percent-%d", percent)}
	if version == "autoscaling/v1" {
		one := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: name}
		one.Spec.ScaleTargetRef = autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		one.Spec.MaxReplicas, one.Spec.TargetCPUUtilizationPercentage = 3, &percent
		_, err := s.client.AutoscalingV1().HorizontalPodAutoscalers(s.namespace).Create(ctx, one, dry)
		return err
	}
	one := &autoscaling.HorizontalPodAutoscaler{ObjectMeta: name}
	one.Spec.ScaleTargetRef = autoscaling.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	one.Spec.MaxReplicas = 3
	one.Spec.Metrics = []autoscaling.MetricSpec{{Type: autoscaling.ResourceMetricSourceType, Resource: &autoscaling.ResourceMetricSource{
		Name: core.ResourceCPU, Target: autoscaling.MetricTarget{Type: autoscaling.UtilizationMetricType, AverageUtilization: &percent},
	}}}
	_, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(s.namespace).Create(ctx, one, dry)
	return err
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// shadowed starts a gateway in shadow mode with a policy that enforces, and returns
// where its decision log is when the API server asks it.
func (s *scene) shadowed(t *testing.T, policy env.Policy) (log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	c := gateway.Configuration{Mode: "shadow", Scan: gateway.Scan{Disabled: true}}
	c.DecisionLog.Folder, c.DecisionLog.Fsync = log, "always"
	s.endLead(t)
	s.gateway = s.start(t, c, "POD_NAME=quaymaster-0")
	must(t, s.gateway.Ready(t.Context()))
	text, err := s.env.YAML(policy)
	must(t, err)
	s.put(t, text)
	eventually(t, func(ctx context.Context) error {
		kept, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, w := range kept.Webhooks {
			if strings.HasSuffix(*w.ClientConfig.URL, "/shadow") && slices.Contains(w.Rules[0].Resources, "pods") {
				return nil
			}
		}
		return errors.New("the shadow is not called for pods")
	})
	return filepath.Join(log, "quaymaster-0")
}

// logLines are the decisions that a log has about an object.
func logLines(t *testing.T, log, name string) (found []*decisionlog.Decision) {
	t.Helper()
	for line, err := range decisionlog.Read(log, 1) {
		must(t, err)
		if line.Decision != nil && line.Decision.Object.Name == name {
			found = append(found, line.Decision)
		}
	}
	return found
}

// admittedAsItWas creates a pod that must be admitted without a change or a warning.
func (s *scene) admittedAsItWas(t *testing.T, name, image string) (uid string) {
	t.Helper()
	listening, said := s.heard(t)
	got, err := listening.create(t, pod(name, image))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	if images(got)[0] != image || got.Annotations[written] != "" {
		t.Errorf("%s became %v, %v", name, images(got), got.Annotations)
	}
	if warned := said(); warned != "" {
		t.Errorf("%s: there is a warning: %s", name, warned)
	}
	return string(got.UID)
}

// TestShadow: in shadow mode a policy that enforces and fails closed stops and changes
// nothing, also while the gateway is away, and its would-be result is recorded. The twin
// enforces.
func TestShadow(t *testing.T) {
	s := unguarded(t, "shadow")
	reports := define(t, s.plane)
	policy := env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, FailurePolicy: "Fail"}
	log := s.shadowed(t, policy)
	bare := s.env.Unsigned("shop/bare", "1.0")
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)

	uid := s.admittedAsItWas(t, "bare", bare.Name)
	s.admittedAsItWas(t, "signed", signed.Name)
	eventually(t, func(context.Context) error {
		lines := logLines(t, log, "bare")
		if len(lines) == 0 {
			return errors.New("nothing is in the decision log")
		}
		for _, d := range lines {
			if !d.Shadow || !d.Allowed || d.Result != "deny" || len(d.Reasons) == 0 || d.Reasons[0].Code != "unsigned" {
				t.Errorf("the decision log has %+v", d)
			}
		}
		return nil
	})
	for _, d := range logLines(t, log, "signed") {
		if !d.Shadow || d.Result != "allow" {
			t.Errorf("the decision log has for the signed one %+v", d)
		}
	}
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if got := gateway.Sum(samples, "quaymaster_shadow_admissions_total", "result", "deny", "cause", "decided"); got != 1 {
		t.Errorf("%v are counted that would have been denied, want 1", got)
	}
	if got := gateway.Sum(samples, "quaymaster_violations_total", "action", "shadow"); got != 1 {
		t.Errorf("%v violations in shadow, want 1", got)
	}
	if got := gateway.Sum(samples, "quaymaster_admissions_total"); got != 0 {
		t.Errorf("%v are counted as answered", got)
	}
	eventually(t, func(ctx context.Context) error {
		all, err := reportsIn(ctx, reports, policyReports, s.namespace)
		if err != nil {
			return err
		}
		r, err := owned(all, uid)
		if err != nil {
			return err
		}
		if len(r.Results) != 1 || r.Results[0].Result != "fail" || r.Results[0].Properties["process"] != "admission review in shadow" {
			return fmt.Errorf("the report has %+v", r.Results)
		}
		return nil
	})

	s.gateway.Kill()
	s.admittedAsItWas(t, "bare-while-away", bare.Name)

	s.endLead(t)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	s.awaitRefused(t, bare.Name, "[unsigned]")
	s.gateway.Kill()
	if _, err := s.dryRun(t.Context(), pod("twin", signed.Name)); err == nil {
		t.Error("the twin, while its gateway is away: it is admitted")
	}
}

// TestModeLabel: where the gateway enforces, the label has no effect, so that it cannot
// exempt a namespace.
func TestModeLabel(t *testing.T) {
	s := guard(t, "mode-label", gateway.Configuration{})
	text, err := s.env.YAML(env.Policy{Name: s.namespace})
	must(t, err)
	s.put(t, text)
	bare := s.env.Unsigned("shop/bare", "1.0")
	for _, value := range []string{"shadow", "enforce", "off"} {
		s.in(t, "mode-label-"+value, "quaymaster.dev/mode", value).awaitRefused(t, bare.Name, "[unsigned]")
	}
}

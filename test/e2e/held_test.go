package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admission "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// guardSecret is the guard's Secret for approvals.
const guardSecret = "quaymaster-guard"

// TestGuard: a policy that would deny running workloads is refused with a list of them; one
// that denies none, or is accepted by a user, comes into force.
func TestGuard(t *testing.T) {
	s := unguarded(t, "guarded")
	s.endLead(t)
	s.dropApprovals(t)
	bare := s.env.Unsigned("shop/bare", "1.0")
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	_, err = s.create(t, pod("runs-bare", bare.Name))
	must(t, err)
	_, err = s.create(t, pod("runs-signed", signed.Name))
	must(t, err)
	s.gateway = s.start(t, gateway.Configuration{Guard: "enabled"})
	must(t, s.gateway.Ready(t.Context()))
	s.begun(t)
	policies := s.policies(t)

	strict := func(annotation string, images ...string) string {
		return s.written(t, env.Policy{Name: "friday", Namespaces: []string{s.namespace}, Images: images}, annotation)
	}
	host := s.env.Registry.Host()
	t.Run("a policy that denies a running pod is refused, with its name", func(t *testing.T) {
		err := s.plane.ApplyYAML(t.Context(), strict(""))
		if !refuses(err, "Pod guarded/runs-bare", "it would stop 1 of ", "quaymaster.dev/guard: accepted", "[unsigned]") {
			t.Errorf("got %v", err)
		}
		if err != nil && strings.Contains(err.Error(), "runs-signed") {
			t.Errorf("it names a pod that it would not stop: %v", err)
		}
	})
	until := t // policies stay until the test ends, and not one of its parts
	t.Run("what stops nothing is in force", func(t *testing.T) {
		s.put(until, strict("", host+"/shop/web*"))
		s.inForce(t, s.env.Unsigned("shop/web", "2.0").Name)
	})
	t.Run("a change that would stop a pod is refused, and the approved version stays", func(t *testing.T) {
		if err := s.plane.ApplyYAML(t.Context(), strict("")); !refuses(err, "runs-bare") {
			t.Errorf("got %v", err)
		}
		s.denies(t, s.env.Unsigned("shop/web", "2.0"))
		if _, err := s.dryRun(t.Context(), pod("bare", bare.Name)); err != nil {
			t.Errorf("the change that was refused counts: %v", err)
		}
	})
	t.Run("audit is not held", func(t *testing.T) {
		text := s.written(t, env.Policy{Name: "friday-audit", Namespaces: []string{s.namespace}, Action: "Audit", Rule: map[string]any{"mutateDigest": false}}, "")
		s.put(t, text)
	})
	t.Run("an accepted policy is in force", func(t *testing.T) {
		must(t, s.plane.ApplyYAML(t.Context(), strict("accepted")))
		s.inForce(t, bare.Name)
	})
	t.Run("a deletion is not held", func(t *testing.T) {
		must(t, policies.Delete(t.Context(), "friday", meta.DeleteOptions{}))
		eventually(t, func(ctx context.Context) error {
			_, err := s.dryRun(ctx, pod("bare", bare.Name))
			return err
		})
	})
}

// TestHeldPolicy: a policy that did not come through the endpoint is held while it denies a
// running workload, and a change of one leaves the approved version in force, over a restart
// too.
func TestHeldPolicy(t *testing.T) {
	s := unguarded(t, "held")
	s.endLead(t)
	s.dropApprovals(t)
	bare := s.env.Unsigned("shop/bare", "1.0")
	_, err := s.create(t, pod("runs-bare", bare.Name))
	must(t, err)
	c := gateway.Configuration{Guard: "enabled"}
	first := s.start(t, c)
	s.gateway = first
	must(t, first.Ready(t.Context()))
	s.begun(t)
	host := s.env.Registry.Host()
	narrow := env.Policy{Name: "held", Namespaces: []string{s.namespace}, Images: []string{host + "/shop/web*"}}
	s.put(t, s.written(t, narrow, ""))
	web := s.env.Unsigned("shop/web", "1.0")
	s.inForce(t, web.Name)

	// No gateway runs when it is changed, and another one starts.
	first.Kill()
	must(t, ignoringAbsent(s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "quaymaster", meta.DeleteOptions{})))
	wide := narrow
	wide.Images = nil
	must(t, s.plane.ApplyYAML(t.Context(), s.written(t, wide, "")))
	must(t, s.plane.ApplyYAML(t.Context(), s.written(t, env.Policy{Name: "held-new", Namespaces: []string{s.namespace}}, "")))
	t.Cleanup(func() {
		_ = s.policies(t).Delete(context.WithoutCancel(t.Context()), "held-new", meta.DeleteOptions{})
	})
	s.endLead(t)
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))

	t.Run("the version before is in force from the first request on", func(t *testing.T) {
		s.denies(t, web)
		if said := s.askedDirectly(t, bare); !said.Allowed {
			t.Errorf("a version that is not approved is in force: %s", said.Result.Message)
		}
	})
	t.Run("it reports the held policies", func(t *testing.T) {
		for _, name := range []string{"held", "held-new"} {
			s.loggedHeld(t, name, "runs-bare")
		}
		eventually(t, func(ctx context.Context) error { return s.gauge(ctx, "quaymaster_policies_withheld", "guard", 2) })
	})
	t.Run("it is in force once it stops nothing", func(t *testing.T) {
		must(t, s.client.CoreV1().Pods(s.namespace).Delete(t.Context(), "runs-bare", meta.DeleteOptions{}))
		// The annotation avoids the wait for the next dry run.
		for _, name := range []string{"held", "held-new"} {
			_, err := s.policies(t).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"quaymaster.dev/guard":"accepted"}}}`), meta.PatchOptions{})
			must(t, err)
		}
		s.inForce(t, bare.Name)
		eventually(t, func(ctx context.Context) error { return s.gauge(ctx, "quaymaster_policies_withheld", "guard", 0) })
	})
}

// TestAuditSource: a source with policies that only audit denies nothing, and warns; another
// source's policies still deny.
func TestAuditSource(t *testing.T) {
	s := unguarded(t, "audits")
	bare := s.env.Unsigned("shop/bare", "1.0")
	other := s.env.Unsigned("other/bare", "1.0")
	folder := t.TempDir()
	host := s.env.Registry.Host()
	text := s.written(t, env.Policy{Name: "from-folder", Namespaces: []string{s.namespace}, Images: []string{host + "/other/*"}}, "")
	must(t, os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(text), 0o600))
	for _, row := range []struct {
		reason              string
		audit               []string
		cluster, fromFolder bool // deny
	}{
		{"no source audits", nil, true, true},
		{"the cluster's audit", []string{"cluster"}, false, true},
		{"one folder's audit", []string{folder}, true, false},
		{"all do", []string{"cluster", "folders"}, false, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			c := gateway.Configuration{}
			c.Policies.Folders, c.Policies.Audit = []string{folder}, row.audit
			s.endLead(t)
			s.gateway = s.start(t, c)
			must(t, s.gateway.Ready(t.Context()))
			s.put(t, s.written(t, env.Policy{Name: "audits", Namespaces: []string{s.namespace}, Images: []string{host + "/shop/*"}}, ""))
			endpoint := s.caller(t, s.gateway)
			for name, want := range map[string]bool{bare.Name: row.cluster, other.Name: row.fromFolder} {
				said, err := endpoint.ask(t.Context(), "/validate", s.reviewOf(pod("p", name), "ann"))
				must(t, err)
				if said.Allowed == want {
					t.Errorf("%s: allowed %t: %+v", name, said.Allowed, said)
				}
			}
			withheld := 0
			for _, denies := range []bool{row.cluster, row.fromFolder} {
				if !denies {
					withheld++
				}
			}
			must(t, s.gauge(t.Context(), "quaymaster_policies_withheld", "source", withheld))
			if said := strings.Contains(s.gateway.Log(), "audit only, regardless of their actions"); said != (len(row.audit) > 0) {
				t.Errorf("the log has it: %t", said)
			}
			s.gateway.Kill()
		})
	}
}

// written is a policy with the annotation of the guard.
func (s *scene) written(t *testing.T, p env.Policy, annotation string) string {
	t.Helper()
	text, err := s.env.YAML(p)
	must(t, err)
	if annotation != "" {
		text = strings.Replace(text, "metadata:", "metadata:\n  annotations: {quaymaster.dev/guard: "+annotation+"}", 1)
	}
	return text
}

func (s *scene) policies(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	return client.Resource(clusterPolicies)
}

// dropApprovals takes away what a guard of another test approved, now and in the end.
func (s *scene) dropApprovals(t *testing.T) {
	t.Helper()
	drop := func() {
		_ = s.client.CoreV1().Secrets("quaymaster").Delete(context.WithoutCancel(t.Context()), guardSecret, meta.DeleteOptions{})
	}
	drop()
	t.Cleanup(drop)
}

// begun waits until the guard has its approvals, and the API server calls it.
func (s *scene) begun(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		err := s.plane.ApplyYAML(ctx, misspelt)
		if refuses(err, "is broken") {
			return nil
		}
		return errors.Join(errNotYet, err, ignoringAbsent(s.policies(t).Delete(ctx, "misspelt", meta.DeleteOptions{})))
	})
	eventually(t, func(ctx context.Context) error {
		_, err := s.client.CoreV1().Secrets("quaymaster").Get(ctx, guardSecret, meta.GetOptions{})
		return err
	})
}

// inForce waits until an image is denied by the policies of the scene.
func (s *scene) inForce(t *testing.T, image string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("probe", image))
		if err == nil {
			return fmt.Errorf("%s is not denied yet", image)
		}
		if !strings.Contains(err.Error(), "[unsigned]") {
			return err
		}
		return nil
	})
}

// askedDirectly calls the gateway itself; its webhooks may not be there yet.
func (s *scene) askedDirectly(t *testing.T, image gatetest.Image) *admission.AdmissionResponse {
	t.Helper()
	said, err := s.caller(t, s.gateway).ask(t.Context(), "/validate", s.reviewOf(pod("probe", image.ByDigest()), "ann"))
	must(t, err)
	return said
}

// denies fails the test unless the gateway refuses an image as unsigned.
func (s *scene) denies(t *testing.T, image gatetest.Image) {
	t.Helper()
	if said := s.askedDirectly(t, image); said.Allowed || !strings.Contains(said.Result.Message, "[unsigned]") {
		t.Errorf("%s: %+v", image.Name, said)
	}
}

// loggedHeld waits until the gateway logged that it holds a policy, and what that stops.
func (s *scene) loggedHeld(t *testing.T, policy, stops string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		lines, err := s.gateway.Lines()
		for _, line := range lines {
			if strings.HasPrefix(fmt.Sprint(line["msg"]), "a policy is held") && line["policy"] == "ClusterPolicy/"+policy && strings.Contains(fmt.Sprint(line["stops"]), stops) {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("there is no line of %s", policy))
	})
}

// gauge checks a metric by its label "by".
func (s *scene) gauge(ctx context.Context, name, by string, want int) error {
	samples, err := s.gateway.Metrics(ctx)
	if err != nil {
		return err
	}
	for _, sample := range samples {
		if sample.Name == name && sample.Labels["by"] == by {
			if int(sample.Value) != want {
				return fmt.Errorf("%s of %s is %g, want %d", name, by, sample.Value, want)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no %s", name)
}

func refuses(err error, words ...string) bool {
	if err == nil {
		return false
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return false
		}
	}
	return true
}

func ignoringAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

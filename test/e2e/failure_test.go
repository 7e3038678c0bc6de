package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// shortTimeout is a webhook's timeout in seconds for tests that let it pass.
const shortTimeout = 2

// edited writes a policy with a changed specification.
func (s *scene) edited(t *testing.T, policy env.Policy, edit func(spec, metadata map[string]any)) string {
	t.Helper()
	text, err := s.env.YAML(policy)
	must(t, err)
	var document map[string]any
	must(t, yaml.Unmarshal([]byte(text), &document))
	edit(document["spec"].(map[string]any), document["metadata"].(map[string]any))
	changed, err := yaml.Marshal(document)
	must(t, err)
	return string(changed)
}

// heard returns the scene with a client that records warnings.
func (s *scene) heard(t *testing.T) (*scene, func() string) {
	t.Helper()
	other := *s
	client, said := s.listening(t)
	other.client = client
	return &other, func() string { return strings.Join(said(), "\n") }
}

// unverified checks that err is the gateway's own refusal of an image that could not be
// verified.
func unverified(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "denied the request") || !strings.Contains(err.Error(), "could not be verified") ||
		strings.Contains(err.Error(), "unsigned") {
		t.Errorf("%s: got %v, want the gateway's refusal: could not be verified", what, err)
	}
}

// breakOff ends the connection without an answer.
func breakOff(http.Handler) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

// waiting answers honestly once it is released.
func waiting() (do registrytest.Action, release func()) {
	released := make(chan struct{})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			select {
			case <-released:
				next.ServeHTTP(w, q)
			case <-q.Context().Done():
			}
		})
	}, sync.OnceFunc(func() { close(released) })
}

// TestRegistryFailures: an image that could not be verified is not reported as unsigned, and
// the policy decides about its admission.
func TestRegistryFailures(t *testing.T) {
	s := unguarded(t, "failure-fail")
	s.gateway = s.freshStart(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	open, said := s.in(t, "failure-ignore").heard(t)
	for failure, guarded := range map[string]*scene{"Fail": s, "Ignore": open} {
		guarded.apply(t, env.Policy{Name: guarded.namespace, Namespaces: []string{guarded.namespace}, FailurePolicy: failure})
		must(t, s.plane.ApplyYAML(t.Context(), s.edited(t,
			env.Policy{Name: guarded.namespace, Namespaces: []string{guarded.namespace}, FailurePolicy: failure},
			func(spec, _ map[string]any) { spec["webhookTimeoutSeconds"] = shortTimeout })))
	}
	s.awaitTimeout(t, shortTimeout)
	bare := s.env.Unsigned("shop/bare", "1.0")

	for _, row := range []struct {
		reason string
		kind   registrytest.Kind
		do     registrytest.Action
	}{
		{"connections break", "", breakOff},
		{"an internal error", "", registrytest.Status(http.StatusInternalServerError)},
		{"too slow", "", nil},
		{"only evidence is too slow", registrytest.Blob, nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			repository := "shop/" + strings.ReplaceAll(row.reason, " ", "-")
			image, err := s.env.Signed(repository, "1.0")
			must(t, err)
			later, release := waiting()
			defer release()
			if row.do == nil {
				row.do = later
			}
			s.env.Registry.SetFaults(registrytest.Fault{Kind: row.kind, Do: row.do})
			defer s.env.Registry.SetFaults()

			began := time.Now()
			_, err = s.dryRun(t.Context(), pod("signed", image.Name))
			unverified(t, "Fail", err)
			// Two seconds for the one webhook that was called; the rest is the API server's own.
			if took := time.Since(began); took > 2*shortTimeout*time.Second {
				t.Errorf("the answer took %s", took)
			}
			said()
			if _, err := open.dryRun(t.Context(), pod("signed", image.Name)); err != nil {
				t.Errorf("Ignore: %v", err)
			}
			if warnings := said(); !strings.Contains(warnings, "could not be verified") || strings.Contains(warnings, "unsigned") {
				t.Errorf("Ignore: the warnings are %q", warnings)
			}

			s.env.Registry.SetFaults()
			release()
			if got, err := s.dryRun(t.Context(), pod("signed", image.Name)); err != nil || images(got)[0] != env.Pinned(image) {
				t.Errorf("the registry is back: %v", err)
			}
			if _, err := open.dryRun(t.Context(), pod("bare", bare.Name)); err == nil {
				t.Error("Ignore admits an unsigned image although the registry answers")
			} else {
				denied(t, "the registry is back", err, "unsigned")
			}
		})
	}

	t.Run("no listener", func(t *testing.T) {
		image, err := s.env.Signed("shop/closed", "1.0")
		must(t, err)
		s.env.Close()
		_, err = s.dryRun(t.Context(), pod("signed", image.Name))
		unverified(t, "Fail", err)
		if _, err := open.dryRun(t.Context(), pod("signed", image.Name)); err != nil {
			t.Errorf("Ignore: %v", err)
		}
	})
}

// awaitTimeout waits until the API server's webhooks for pods have a timeout.
func (s *scene) awaitTimeout(t *testing.T, seconds int32) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		kept, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, webhook := range kept.Webhooks {
			if strings.HasSuffix(*webhook.ClientConfig.URL, "/validate") && *webhook.TimeoutSeconds != seconds {
				return fmt.Errorf("%s has a timeout of %d s", webhook.Name, *webhook.TimeoutSeconds)
			}
		}
		return nil
	})
}

// awaitIgnored waits until no webhook that fails closed selects a resource: an earlier version of
// the policy did.
func (s *scene) awaitIgnored(t *testing.T, resource string) {
	t.Helper()
	selects := func(policy *registration.FailurePolicyType, rules []registration.RuleWithOperations) bool {
		return *policy == registration.Fail && slices.ContainsFunc(rules, func(r registration.RuleWithOperations) bool {
			return slices.Contains(r.Resources, resource)
		})
	}
	eventually(t, func(ctx context.Context) error {
		mutating, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		validating, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(mutating.Webhooks, func(w registration.MutatingWebhook) bool { return selects(w.FailurePolicy, w.Rules) }) ||
			slices.ContainsFunc(validating.Webhooks, func(w registration.ValidatingWebhook) bool { return selects(w.FailurePolicy, w.Rules) }) {
			return fmt.Errorf("a webhook that fails closed still selects %s", resource)
		}
		return nil
	})
}

var errAdmitted = errors.New("it was admitted")

// TestGatewayDown: while no replica runs, the API server refuses what policies
// want to be refused, and nothing else.
func TestGatewayDown(t *testing.T) {
	s := unguarded(t, "down")
	running := s.freshStart(t, gateway.Configuration{Listen: gateway.Listen{DrainDelay: "100ms"}})
	must(t, running.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, FailurePolicy: "Fail"})
	must(t, s.plane.ApplyYAML(t.Context(), s.edited(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, FailurePolicy: "Fail"},
		func(_, metadata map[string]any) {
			metadata["annotations"] = map[string]any{"pod-policies.kyverno.io/autogen-controllers": "none"} // StatefulSets are the other's
		})))
	text, err := s.env.YAML(env.Policy{
		Name: "down-ignored", Kinds: []string{"StatefulSet"}, Namespaces: []string{s.namespace}, FailurePolicy: "Ignore",
	})
	must(t, err, s.plane.ApplyYAML(t.Context(), text))
	t.Cleanup(func() { s.remove(t, "down-ignored") })
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	guarded := func(ctx context.Context) error {
		if err := s.tryStatefulSet(ctx, bare.Name); err == nil {
			return errAdmitted
		}
		_, err := s.dryRun(ctx, pod("signed", signed.Name))
		return err
	}
	eventually(t, guarded)
	s.awaitIgnored(t, "statefulsets")

	for round := range 2 {
		must(t, running.Terminate())
		<-running.Done()
		if err := running.Ended(); err != nil {
			t.Errorf("asked to end, it ended with %v", err)
		}
		for range 2 { // not only the first answer, which may be cached
			if _, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
				t.Errorf("round %d: a pod while the gateway is away: %v, want that it is refused", round, err)
			}
			if err := s.tryStatefulSet(t.Context(), bare.Name); err != nil {
				t.Errorf("round %d: a kind of an Ignore policy while the gateway is away: %v", round, err)
			}
		}
		running = s.freshStart(t, running.Configuration)
		must(t, running.Ready(t.Context()))
		if err := guarded(t.Context()); err != nil {
			t.Errorf("round %d: it is back: %v", round, err)
		}
		_, err := s.dryRun(t.Context(), pod("bare", bare.Name))
		denied(t, "it is back", err, "unsigned")
	}
}

// tryStatefulSet creates one, as a dry run.
func (s *scene) tryStatefulSet(ctx context.Context, image string) error {
	labels := map[string]string{"app": "web"}
	set := &apps.StatefulSet{ObjectMeta: meta.ObjectMeta{Name: "web"}}
	set.Spec.Selector = &meta.LabelSelector{MatchLabels: labels}
	set.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", image).Spec}
	_, err := s.client.AppsV1().StatefulSets(s.namespace).Create(ctx, set, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	return err
}

// remove takes a policy away.
func (s *scene) remove(t *testing.T, policy string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	if err := client.Resource(clusterPolicies).Delete(context.WithoutCancel(t.Context()), policy, meta.DeleteOptions{}); err != nil {
		t.Logf("the policy %s stays: %v", policy, err)
	}
}

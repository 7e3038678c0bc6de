package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// namespaced writes a policy as one of a namespace.
func (s *scene) namespaced(t *testing.T, policy env.Policy) string {
	t.Helper()
	text, err := s.env.YAML(policy)
	must(t, err)
	text = strings.Replace(text, "kind: ClusterPolicy", "kind: Policy", 1)
	return strings.Replace(text, "name: "+policy.Name, "name: "+policy.Name+"\n  namespace: "+s.namespace, 1)
}

// guards returns the webhooks that are registered for the creation of Pods in the scene's
// namespace.
func (s *scene) guards(ctx context.Context) ([]admission.ValidatingWebhook, error) {
	kept, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, ownName, meta.GetOptions{})
	if err != nil {
		return nil, err
	}
	var guards []admission.ValidatingWebhook
	for _, webhook := range kept.Webhooks {
		selector, err := meta.LabelSelectorAsSelector(webhook.NamespaceSelector)
		if err != nil {
			return nil, err
		}
		createsPods := slices.ContainsFunc(webhook.Rules, func(r admission.RuleWithOperations) bool {
			return slices.Contains(r.Resources, "pods") && slices.Contains(r.Operations, admission.Create)
		})
		if createsPods && selector.Matches(labels.Set{"kubernetes.io/metadata.name": s.namespace}) {
			guards = append(guards, webhook)
		}
	}
	return guards, nil
}

// called lists webhooks by the fields that matter here.
func called(webhooks []admission.ValidatingWebhook) []string {
	var all []string
	for _, w := range webhooks {
		all = append(all, fmt.Sprint(w.Name, " ", *w.FailurePolicy, " ", *w.TimeoutSeconds, " s"))
	}
	return all
}

// calls returns how often the API server called a webhook, by its own count.
func (s *scene) calls(t *testing.T, webhook string) float64 {
	t.Helper()
	text, err := s.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	samples, err := gateway.Samples(strings.NewReader(string(text)))
	must(t, err)
	return gateway.Sum(samples, "apiserver_admission_webhook_request_total", "name", webhook, "type", "validating")
}

// TestDivided: failure policy and timeout of one namespace's policy apply there and nowhere
// else, and the API server calls the webhook of each.
func TestDivided(t *testing.T) {
	loose := guard(t, "divided-loose", gateway.Configuration{})
	strict := loose.in(t, "divided-strict")
	text, err := loose.env.YAML(env.Policy{
		Name: "divided", FailurePolicy: "Ignore", Spec: map[string]any{"webhookTimeoutSeconds": 7},
		// Not the pods of other tests, which leave theirs behind.
		Images: []string{loose.env.Registry.Host() + "/*"},
	})
	must(t, err)
	loose.put(t, text)
	loose.put(t, strict.namespaced(t, env.Policy{Name: "divided", FailurePolicy: "Fail", Spec: map[string]any{"webhookTimeoutSeconds": 30}}))
	var names [2]string
	for i, row := range []struct {
		in      *scene
		failure admission.FailurePolicyType
		seconds int32
	}{{loose, admission.Ignore, 7}, {strict, admission.Fail, 30}} {
		eventually(t, func(ctx context.Context) error {
			guards, err := row.in.guards(ctx)
			if err != nil {
				return err
			}
			if len(guards) != 1 || *guards[0].FailurePolicy != row.failure || *guards[0].TimeoutSeconds != row.seconds {
				return fmt.Errorf("pods of %s: the webhooks are %v, want one: %s, %d s", row.in.namespace, called(guards), row.failure, row.seconds)
			}
			names[i] = guards[0].Name
			return nil
		})
	}
	if names[0] == names[1] {
		t.Fatalf("one webhook, %s, for both namespaces", names[0])
	}
	bare := loose.env.Unsigned("shop/bare", "1.0")
	signed, err := loose.env.Signed("shop/web", "1.0")
	must(t, err)
	for _, in := range []*scene{loose, strict} {
		in.awaitGuard(t, in, bare.Name, true)
		_, err := in.dryRun(t.Context(), pod("bare", bare.Name))
		denied(t, "an unsigned image in "+in.namespace, err, "unsigned")
		if got, err := in.dryRun(t.Context(), pod("signed", signed.Name)); err != nil || images(got)[0] != env.Pinned(signed) {
			t.Errorf("a signed image in %s: %v", in.namespace, err)
		}
	}
	t.Run("each is called for its own", func(t *testing.T) { tryCalls(t, loose, strict, names, signed.ByDigest()) })
	t.Run("the registry is away", func(t *testing.T) { tryRegistryAway(t, loose, strict) })
	t.Run("the gateway is away", func(t *testing.T) {
		loose.gateway.Kill()
		if _, err := strict.dryRun(t.Context(), pod("signed", signed.Name)); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("under Fail: %v, want that the API server refuses", err)
		}
		if _, err := loose.dryRun(t.Context(), pod("signed", signed.Name)); err != nil {
			t.Errorf("under Ignore: %v", err)
		}
	})
}

// tryCalls checks by the API server's metrics which webhooks it called.
func tryCalls(t *testing.T, loose, strict *scene, names [2]string, image string) {
	for i, in := range []*scene{loose, strict} {
		var before [2]float64
		for j, name := range names {
			before[j] = in.calls(t, name)
		}
		_, err := in.dryRun(t.Context(), pod("counted", image))
		must(t, err)
		for j, name := range names {
			want := 0.0
			if i == j {
				want = 1
			}
			if got := in.calls(t, name) - before[j]; got != want {
				t.Errorf("a pod of %s: %v calls of %s, want %v", in.namespace, got, name, want)
			}
		}
	}
}

func tryRegistryAway(t *testing.T, loose, strict *scene) {
	unseen, err := loose.env.Signed("shop/unseen", "1.0")
	must(t, err)
	loose.env.Registry.SetFaults(registrytest.Fault{Do: breakOff})
	defer loose.env.Registry.SetFaults()
	_, err = strict.dryRun(t.Context(), pod("unseen", unseen.Name))
	unverified(t, "under Fail", err)
	heard, said := loose.heard(t)
	if _, err := heard.dryRun(t.Context(), pod("unseen", unseen.Name)); err != nil {
		t.Errorf("under Ignore: %v", err)
	}
	if warnings := said(); !strings.Contains(warnings, "could not be verified") {
		t.Errorf("the warning of an unverified pod is %q", warnings)
	}
	loose.env.Registry.SetFaults()
	eventually(t, func(ctx context.Context) error {
		got, err := strict.dryRun(ctx, pod("unseen", unseen.Name))
		if err == nil && images(got)[0] != env.Pinned(unseen) {
			err = errors.New("it is back, and does not pin")
		}
		return err
	})
}

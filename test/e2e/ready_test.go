package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// readyRoundsVariable is how many rounds TestReady makes for each form of the cluster.
const readyRoundsVariable = "QUAYMASTER_READY_ROUNDS"

// denying denies every ConfigMap, Secret or Service of a namespace.
const denying = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  background: false
  rules:
    - name: none
      match: {any: [{resources: {kinds: [%s], namespaces: [%s]}}]}
      validate: {failureAction: Enforce, message: none of these, deny: {}}
`

// TestReady: from the moment at which a policy's condition Ready is True, nothing that it
// denies is admitted, also of a kind that no policy named before.
func TestReady(t *testing.T) {
	rounds := 3
	if text := os.Getenv(readyRoundsVariable); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		must(t, err)
	}
	s := guard(t, "ready", gateway.Configuration{})
	t.Run("one gateway", func(t *testing.T) { s.tryReady(t, "one", rounds) })
	t.Run("a condition is written once", s.tryReadyWrites)
	t.Run("without the permission to probe", s.tryProbeForbidden)
	s.gateway.Kill()
	s.endLead(t)
	replicas := s.replicas(t, 2, nil)
	s.gateway = replicas[0]
	t.Run("two replicas behind a balancer", func(t *testing.T) { s.tryReady(t, "two", rounds) })
}

func (s *scene) tryReady(t *testing.T, prefix string, rounds int) {
	kinds := []string{"ConfigMap", "Secret", "Service"}
	for i := range rounds {
		kind, name := kinds[i%len(kinds)], fmt.Sprintf("ready-%s-%d", prefix, i)
		s.awaitUnnamed(t, kind)
		must(t, s.plane.ApplyYAML(t.Context(), fmt.Sprintf(denying, name, kind, s.namespace)))
		s.awaitReady(t, name)
		for n := range 5 {
			if err := s.tryCreate(t.Context(), kind, fmt.Sprint(name, "-", n)); err == nil || !strings.Contains(err.Error(), "none of these") {
				t.Errorf("round %d: %s %d after Ready=True: %v", i, kind, n, err)
			}
		}
		s.dropPolicy(t, name)
		eventually(t, func(ctx context.Context) error { return s.tryCreate(ctx, kind, name) })
	}
}

// awaitUnnamed waits until the configurations no longer name a kind: they do for some
// seconds after the last policy, and one that they name is in force without a change.
func (s *scene) awaitUnnamed(t *testing.T, kind string) {
	t.Helper()
	resource := strings.ToLower(kind) + "s"
	eventually(t, func(ctx context.Context) error {
		configuration, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, webhook := range configuration.Webhooks {
			for _, rule := range webhook.Rules {
				if webhook.Name != "probe.quaymaster.dev" && slices.Contains(rule.Resources, resource) {
					return fmt.Errorf("the webhook %s names %s", webhook.Name, resource)
				}
			}
		}
		return nil
	})
}

// tryCreate creates an object of a kind, as a dry run.
func (s *scene) tryCreate(ctx context.Context, kind, name string) error {
	object, dry := meta.ObjectMeta{Name: name}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	api := s.client.CoreV1()
	var err error
	switch kind {
	case "ConfigMap":
		_, err = api.ConfigMaps(s.namespace).Create(ctx, &core.ConfigMap{ObjectMeta: object}, dry)
	case "Secret":
		_, err = api.Secrets(s.namespace).Create(ctx, &core.Secret{ObjectMeta: object}, dry)
	default:
		_, err = api.Services(s.namespace).Create(ctx, &core.Service{ObjectMeta: object, Spec: core.ServiceSpec{Ports: []core.ServicePort{{Port: 80}}}}, dry)
	}
	return err
}

func (s *scene) dropPolicy(t *testing.T, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err, client.Resource(clusterPolicies).Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{}))
}

// condition returns a policy's condition Ready, and the version of the policy.
func (s *scene) condition(ctx context.Context, name string) (condition map[string]any, version string, err error) {
	client, err := dynamic.NewForConfig(s.plane.Admin())
	if err != nil {
		return nil, "", err
	}
	got, err := client.Resource(clusterPolicies).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	list, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
	for _, item := range list {
		if condition, _ := item.(map[string]any); condition["type"] == "Ready" && condition["observedGeneration"] == got.GetGeneration() {
			return condition, got.GetResourceVersion(), nil
		}
	}
	return nil, "", fmt.Errorf("no condition Ready of generation %d among %v", got.GetGeneration(), list)
}

func (s *scene) awaitReady(t *testing.T, name string) {
	t.Helper()
	s.awaitReason(t, name, "True", "Active")
}

func (s *scene) awaitReason(t *testing.T, name, status, reason string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		condition, _, err := s.condition(ctx, name)
		if err == nil && (condition["status"] != status || condition["reason"] != reason) {
			err = fmt.Errorf("Ready is %v, want %s %s", condition, status, reason)
		}
		return err
	})
}

// tryReadyWrites: a policy's status is not written when another policy comes and changes the
// configurations, and its condition keeps its time.
func (s *scene) tryReadyWrites(t *testing.T) {
	s.awaitUnnamed(t, "Secret")
	must(t, s.plane.ApplyYAML(t.Context(), fmt.Sprintf(denying, "ready-first", "ConfigMap", s.namespace)))
	s.awaitReady(t, "ready-first")
	before, version, err := s.condition(t.Context(), "ready-first")
	must(t, err)
	must(t, s.plane.ApplyYAML(t.Context(), fmt.Sprintf(denying, "ready-second", "Secret", s.namespace)))
	s.awaitReady(t, "ready-second")
	after, now, err := s.condition(t.Context(), "ready-first")
	must(t, err)
	if now != version || before["lastTransitionTime"] != after["lastTransitionTime"] {
		t.Errorf("the first policy was written again: %v, then %v", before, after)
	}
	s.dropPolicy(t, "ready-first")
	s.dropPolicy(t, "ready-second")
}

// tryProbeForbidden takes the right to create ConfigMaps away: a new policy is enforced, and
// its condition reports the check that is not possible.
func (s *scene) tryProbeForbidden(t *testing.T) {
	roles := s.client.RbacV1().Roles(releaseNamespace)
	role, err := roles.Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	whole := role.DeepCopy()
	for i := range role.Rules {
		if role.Rules[i].Resources[0] == "configmaps" {
			role.Rules = append(role.Rules[:i:i], role.Rules[i+1:]...)
			break
		}
	}
	if len(role.Rules) == len(whole.Rules) {
		t.Fatal("the role does not allow a probe")
	}
	_, err = roles.Update(t.Context(), role, meta.UpdateOptions{})
	must(t, err)
	restore := func() {
		ctx := context.WithoutCancel(t.Context())
		current, err := roles.Get(ctx, ownName, meta.GetOptions{})
		must(t, err)
		current.Rules = whole.Rules
		_, err = roles.Update(ctx, current, meta.UpdateOptions{})
		must(t, err)
	}
	t.Cleanup(restore)
	eventually(t, func(ctx context.Context) error { // the API server has taken it in
		_, err := clientset(t, s.identity).CoreV1().ConfigMaps(releaseNamespace).Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "x"}}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil {
			return errors.New("the gateway may still create ConfigMaps")
		}
		return nil
	})
	s.awaitUnnamed(t, "Service")
	must(t, s.plane.ApplyYAML(t.Context(), fmt.Sprintf(denying, "ready-forbidden", "Service", s.namespace)))
	t.Cleanup(func() { s.dropPolicy(t, "ready-forbidden") })
	s.awaitReason(t, "ready-forbidden", "Unknown", "ProbeForbidden")
	eventually(t, func(ctx context.Context) error {
		if err := s.tryCreate(ctx, "Service", "x"); err == nil {
			return errors.New("it does not hold")
		}
		return nil
	})
	restore()
	s.awaitReady(t, "ready-forbidden")
}

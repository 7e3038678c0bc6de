package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// sample returns the sum of a metric of the gateway; -1 where it is not shown.
func (s *scene) sample(ctx context.Context, name string) (float64, error) {
	samples, err := s.gateway.Metrics(ctx)
	total, shown := 0.0, false
	for _, each := range samples {
		if each.Name == name {
			total, shown = total+each.Value, true
		}
	}
	if err == nil && !shown {
		total = -1
	}
	return total, err
}

// reads waits until a metric of the gateway has a value.
func (s *scene) reads(t *testing.T, name string, want float64) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got, err := s.sample(ctx, name)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %v, want %v", name, got, want)
		}
		return err
	})
}

// TestTenants: one namespace's registries never answer, and it creates more than the limit of
// concurrent requests. It takes three quarters, and the other one's pods, known and new,
// start while none of the former's is answered. Those get the result that they could not be
// verified, or that the seats are taken; never that an image is unsigned.
func TestTenants(t *testing.T) {
	s := unguarded(t, "tenants-calm")
	s.vacate(t)
	c := gateway.Configuration{}
	c.Limits.Requests = 16
	var tarpits []*env.Env
	patterns := []string{s.env.Registry.Host() + "/*"}
	for range 5 { // more hosts than share the requests to registries
		tarpit := openEnv(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.Hang()}}})
		tarpits, patterns = append(tarpits, tarpit), append(patterns, tarpit.Registry.Host()+"/*")
		c.PlainHTTP(tarpit.Registry.Host())
	}
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	greedy := s.in(t, "tenants-greedy")
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, Images: patterns})
	text, err := s.env.YAML(env.Policy{
		Name: greedy.namespace, Namespaces: []string{greedy.namespace}, Images: patterns, Spec: map[string]any{"webhookTimeoutSeconds": 20},
	})
	must(t, err)
	greedy.put(t, text)
	known, err := s.env.Signed("calm/known", "1.0")
	must(t, err)
	bare := s.env.Unsigned("calm/bare", "1.0")
	s.awaitGuard(t, greedy, bare.Name, true)
	_, err = s.dryRun(t.Context(), pod("known", known.Name))
	must(t, err)

	var answered atomic.Int64
	told := make([]string, 60)
	var all sync.WaitGroup
	for i := range told {
		p := pod(fmt.Sprintf("slow-%d", i))
		for n := range 12 {
			host := tarpits[(i+n)%len(tarpits)].Registry.Host()
			p.Spec.Containers = append(p.Spec.Containers, core.Container{Name: fmt.Sprintf("c%d", n), Image: fmt.Sprintf("%s/greedy/app-%d-%d:1.0", host, i, n)})
		}
		all.Go(func() {
			_, err := greedy.dryRun(t.Context(), p)
			answered.Add(1)
			if err != nil {
				told[i] = err.Error()
			}
		})
	}
	s.reads(t, "quaymaster_queue_working", 12) // three quarters of 16
	eventually(t, func(ctx context.Context) error {
		if waiting, err := s.sample(ctx, "quaymaster_queue_waiting_for_share"); err != nil || waiting < 1 {
			return fmt.Errorf("%v wait for their share, %w", waiting, err)
		}
		return nil
	})
	for i := range 10 {
		if _, err := s.dryRun(t.Context(), pod("known", known.Name)); err != nil {
			t.Errorf("a known image, the %d. time: %v", i, err)
		}
	}
	for i := range 3 {
		fresh, err := s.env.Signed("calm/fresh", fmt.Sprint(i))
		must(t, err)
		got, err := s.dryRun(t.Context(), pod("fresh", fresh.Name))
		if err != nil || images(got)[0] != env.Pinned(fresh) {
			t.Errorf("a new image: %v", err)
		}
	}
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	if n := answered.Load(); n != 0 {
		t.Errorf("%d of the other namespace's pods were answered meanwhile, so that nothing is shown", n)
	}
	all.Wait()
	shares := 0
	for i, text := range told {
		if strings.Contains(text, "the namespace has reached its share") {
			shares++
		}
		if !strings.Contains(text, "could not be verified") || strings.Contains(text, "unsigned") {
			t.Errorf("pod %d of the slow registries: %q", i, text)
		}
	}
	if shares == 0 {
		t.Error("there was no answer that the namespace has its share")
	}
	s.reads(t, "quaymaster_queue_working", 0)
}

// TestOwnPolicies: a team's own policy refuses more in its namespace, opens nothing that
// the platform's refuses, and reads no Secret of another namespace.
func TestOwnPolicies(t *testing.T) {
	s := guard(t, "own-policies", gateway.Configuration{})
	own, other := s.in(t, "own-policies-team"), s.in(t, "own-policies-other")
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := s.env.SignedBy(s.env.Stranger, "shop/foreign", "1.0")
	must(t, err)
	platform, err := s.env.YAML(env.Policy{Name: "platform", Namespaces: []string{own.namespace, other.namespace}})
	must(t, err)
	s.put(t, platform)
	s.awaitGuard(t, own, s.env.Unsigned("shop/bare", "1.0").Name, true)

	trusting := *s.env // policies that it writes trust the stranger
	trusting.Signer = s.env.Stranger
	text, err := trusting.YAML(env.Policy{Name: "team"})
	must(t, err)
	team := strings.Replace(strings.Replace(text, "kind: ClusterPolicy", "kind: Policy", 1), "name: team", "name: team\n  namespace: "+own.namespace, 1)
	_, err = own.dryRun(t.Context(), pod("web", signed.Name))
	must(t, err)
	s.put(t, team)
	_, err = own.dryRun(t.Context(), pod("foreign", foreign.Name))
	denied(t, "an image that the team trusts and the platform does not", err, "wrong-key")
	if err == nil || !strings.Contains(err.Error(), "ClusterPolicy/platform") {
		t.Errorf("the denial does not name the platform's policy: %v", err)
	}
	_, err = own.dryRun(t.Context(), pod("web", signed.Name))
	denied(t, "an image that the platform trusts and the team does not", err, "wrong-key")
	if err == nil || !strings.Contains(err.Error(), "Policy/"+own.namespace+"/team") {
		t.Errorf("the denial does not name the team's policy: %v", err)
	}
	_, err = other.dryRun(t.Context(), pod("web", signed.Name))
	must(t, err)

	for _, field := range []string{
		"publicKeys: k8s://" + other.namespace + "/key",
		"secret: {name: key, namespace: " + other.namespace + "}",
	} {
		reading := "apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: reading, namespace: " + own.namespace + "}\nspec:\n  rules:\n" +
			"  - name: signed\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    verifyImages:\n" +
			"    - imageReferences: ['*']\n      attestors: [{entries: [{keys: {" + field + "}}]}]\n"
		if err := s.plane.ApplyYAML(t.Context(), reading); err == nil || !strings.Contains(err.Error(), "cannot use a Secret of namespace "+other.namespace) {
			t.Errorf("%s: %v; want it refused", field, err)
		}
	}
}

// TestRegistryReturns429: a registry answers 429. Verified images start, answers for new ones
// have the time of the next attempt, and the registry is hardly called until it answers as
// before, by itself.
func TestRegistryReturns429(t *testing.T) {
	s := unguarded(t, "slow-down")
	s.vacate(t)
	s.gateway = s.start(t, gateway.Configuration{Ages: gateway.Ages{Tag: "1ms", Fact: "1s", None: "1ms"}})
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	proved, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	later, err := s.env.Signed("shop/later", "1.0")
	must(t, err)
	open, said := s.heard(t)
	_, err = open.dryRun(t.Context(), pod("web", proved.Name))
	must(t, err)
	if warned := said(); strings.Contains(warned, "[stale]") {
		t.Fatalf("while the registry answers: %s", warned)
	}

	s.env.Registry.SetFaults(registrytest.Fault{Do: registrytest.RetryAfter(http.StatusTooManyRequests, "30")})
	s.env.Registry.Reset()
	_, err = s.dryRun(t.Context(), pod("later", later.Name))
	unverified(t, "a new image", err)
	if err != nil && (!strings.Contains(err.Error(), "HTTP 429") || !strings.Contains(err.Error(), "again")) {
		t.Errorf("it does not say when to try again: %v", err)
	}
	first := s.env.Registry.Count("")
	for i := range 20 {
		_, err = s.dryRun(t.Context(), pod("later", fmt.Sprintf("%s/shop/later-%d:1.0", s.env.Registry.Host(), i)))
		unverified(t, "another new image", err)
		if err != nil && !strings.Contains(err.Error(), "try again then") {
			t.Errorf("it does not say when to try again: %v", err)
		}
	}
	if n := s.env.Registry.Count(""); n != first || first > 2 {
		t.Errorf("the registry was asked %d times at first, %d times in all", first, n)
	}
	s.reads(t, "quaymaster_registries_limited", 1)
	s.slowDownPage(t)
	eventually(t, func(ctx context.Context) error { // the fact is young at first
		said()
		got, err := open.dryRun(ctx, pod("web", proved.Name))
		if err != nil {
			return err
		}
		if images(got)[0] != env.Pinned(proved) {
			t.Fatalf("pinned as %s", images(got)[0])
		}
		if !strings.Contains(said(), "[stale]") {
			return fmt.Errorf("there was no warning")
		}
		return nil
	})

	s.env.Registry.SetFaults()
	eventually(t, func(ctx context.Context) error {
		got, err := s.dryRun(ctx, pod("later", later.Name))
		if err == nil && images(got)[0] != env.Pinned(later) {
			err = fmt.Errorf("pinned as %s", images(got)[0])
		}
		return err
	})
	eventually(t, func(ctx context.Context) error {
		said()
		_, err := open.dryRun(ctx, pod("web", proved.Name))
		if err == nil && strings.Contains(said(), "[stale]") {
			err = fmt.Errorf("it is still not asked")
		}
		return err
	})
}

// slowDownPage runs the commands of docs/rate-limits.md. There is no node here, so the
// gateway's own address is used, and its log is a file.
func (s *scene) slowDownPage(t *testing.T) {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	commands, err := site.Pages["docs/rate-limits.md"].Commands()
	must(t, err)
	if len(commands) != 3 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	folder := t.TempDir()
	write(t, folder, "gateway.log", s.gateway.Log(), 0o600)
	must(t, docs.Shell{
		Folder: folder,
		Env:    []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH"), "NO_PROXY=127.0.0.1"},
		Names:  map[string]string{"registry.example": s.env.Registry.Host(), "localhost:8000": s.gateway.Configuration.Listen.Plain},
		Calls: map[string]string{
			"kubectl -n quaymaster port-forward deploy/quaymaster 8000 &":     "true &",
			"kubectl -n quaymaster logs -l app.kubernetes.io/name=quaymaster": "cat gateway.log",
		},
	}.Run(t.Context(), "docs/rate-limits.md", commands))
}

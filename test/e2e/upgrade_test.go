package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// versionBefore is the commit of the version that this one is an upgrade of. Another one
// is named here when a release is made.
const versionBefore = "13cbde9fae51e33e86a8a133a5768be8dd394931"

// before builds the version before from the repository's own history.
func before(t *testing.T) string {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	git := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", checkout}, args...)...)
	}
	if err := git("cat-file", "-e", versionBefore+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not in this checkout: the upgrade from the version before is NOT tested here (git fetch --unshallow)", versionBefore)
	}
	folder := t.TempDir()
	archive := filepath.Join(folder, "source.tar")
	must(t, git("archive", "--format=tar", "--output="+archive, versionBefore).Run())
	source := filepath.Join(folder, "source")
	must(t, os.Mkdir(source, 0o700), exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", source).Run(), os.Remove(archive))
	program := filepath.Join(folder, "quaymaster")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/quaymaster")
	build.Dir = source
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the version before: %v\n%s", err, said)
	}
	return program
}

// side are replicas behind one balancer, each at an address that its successor takes over.
type side struct {
	*scene
	configurations []gateway.Configuration
	running        []*gateway.Gateway
}

// TestUpgrade: the version before and this one serve together under load, with the same
// shared cache and as peers, and back again: nothing wrong is admitted, and nothing that
// is right refused.
func TestUpgrade(t *testing.T) {
	peers.Long(t)
	old := before(t)
	current, err := shared.binary()
	must(t, err)
	_, address := redis(t)
	s := unguarded(t, "upgrade")
	s.vacate(t)
	s.endLead(t)
	u := &side{scene: s, configurations: make([]gateway.Configuration, 2), running: make([]*gateway.Gateway, 2)}
	var backends []balancer.Backend
	for i := range u.configurations {
		c := &u.configurations[i]
		c.Listen.Address, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.Plain, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.DrainDelay = "1s"
		c.Peers.Address = c.Listen.Address
		c.SharedMemory.Address, c.SharedMemory.Timeout = address, "500ms"
		backends = append(backends, balancer.Backend{Address: c.Listen.Address, Ready: "http://" + c.Listen.Plain + "/readyz"})
	}
	front, err := balancer.Listen(t.Context(), backends...)
	must(t, err)
	t.Cleanup(front.Close)
	for i := range u.configurations {
		u.configurations[i].Webhooks.URL = "https://" + front.Address()
		u.replace(t, i, old)
	}
	s.gateway = u.running[0]
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	load := s.gather(t, signed.Name, s.env.Unsigned("shop/bare", "1.0").Name)
	load.more(t)
	for _, step := range []struct {
		reason  string
		replica int
		program string
	}{
		{"one of each", 0, current}, {"both new", 1, current}, {"one rolled back", 0, old}, {"both rolled back", 1, old},
	} {
		u.replace(t, step.replica, step.program)
		load.more(t)
		u.proveApart(t, step.reason)
		load.more(t)
	}
	load.leave()
	load.check(t, 0)
	t.Logf("%d rounds of a signed and an unsigned pod over 4 replacements", load.asked.Load())
}

// replace ends the replica at a place and starts a program there. It leads some time, or
// another one does.
func (u *side) replace(t *testing.T, i int, program string) {
	t.Helper()
	if gone := u.running[i]; gone != nil {
		must(t, gone.Terminate())
		select {
		case <-gone.Done():
		case <-t.Context().Done():
		}
		if err := gone.Ended(); err != nil {
			t.Errorf("asked to end, it ended with %v", err)
		}
	}
	u.running[i] = u.startProgram(t, program, u.configurations[i])
	must(t, u.running[i].Ready(t.Context()))
}

// proveApart has each replica decide about images that the other one verified.
func (u *side) proveApart(t *testing.T, reason string) {
	t.Helper()
	word := strings.ReplaceAll(reason, " ", "-")
	for i, first := range u.running {
		second := u.running[1-i]
		image, err := u.env.Signed("shop/"+word, fmt.Sprint(i))
		must(t, err)
		bare := u.env.Unsigned("shop/"+word+"-bare", fmt.Sprint(i))
		must(t, u.admitBetween(t.Context(), pod(fmt.Sprint("cold-", i), image.Name), u.caller(t, first), u.caller(t, second)))
		for _, g := range u.running {
			said, err := u.caller(t, g).ask(t.Context(), "/validate", u.reviewOf(pod("bare", bare.ByDigest()), "ann"))
			must(t, err)
			if said.Allowed {
				t.Errorf("%s: replica %d admits an unsigned image", reason, i)
			}
		}
	}
}

// TestDryVerdicts: a new version first reports the verdicts on running workloads that differ
// from those of the one before, and becomes ready whatever it finds.
func TestDryVerdicts(t *testing.T) {
	client := define(t, plane(t))
	s := unguarded(t, "dry")
	s.endLead(t)
	bare := s.env.Unsigned("shop/bare", "1.0")
	lone, err := s.create(t, pod("lone", bare.Name))
	must(t, err)
	c := gateway.Configuration{}
	c.Scan.Interval = "1h"
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	policy := env.Policy{Name: "dry-signed", Namespaces: []string{s.namespace}}
	s.enforce(t, policy)
	s.awaitResults(t, client, lone, map[string]string{"dry-signed": "fail background scan"})

	t.Run("nothing differs", func(t *testing.T) {
		said := s.startDry(t, c, "")
		if !strings.Contains(said, " changed verdicts: 0,") || strings.Contains(said, "->") {
			t.Errorf("it wrote %q", said)
		}
	})
	t.Run("new passes are reported", func(t *testing.T) {
		other := policy
		other.Images = []string{s.env.Registry.Host() + "/other/*"}
		text, err := s.env.YAML(other)
		must(t, err, s.plane.ApplyYAML(t.Context(), text))
		more := policy
		more.Name = "dry-new"
		text, err = s.env.YAML(more)
		must(t, err, s.plane.ApplyYAML(t.Context(), text))
		policies := s.policies(t)
		t.Cleanup(func() { _ = policies.Delete(context.WithoutCancel(t.Context()), "dry-new", meta.DeleteOptions{}) })
		said := s.startDry(t, c, "")
		if !strings.Contains(said, "Pod dry/lone, container c0: ClusterPolicy/dry-new, rule ") || !strings.Contains(said, "pass -> fail, denied [unsigned]") {
			t.Errorf("it wrote %q", said)
		}
	})
	t.Run("it does not wait for ever", func(t *testing.T) {
		text, err := s.env.YAML(policy) // which matches the pod again
		must(t, err, s.plane.ApplyYAML(t.Context(), text))
		s.env.Registry.SetFaults(registrytest.Fault{Do: registrytest.Hang()})
		defer s.env.Registry.SetFaults()
		began := time.Now()
		said := s.startDry(t, c, "=1s")
		if !strings.Contains(said, "the limit of 1s was reached") {
			t.Errorf("it wrote %q after %s", said, time.Since(began))
		}
	})
}

// startDry starts a replica with --dry-verdicts in place of the scene's, and returns the text
// that it wrote before it was ready.
func (s *scene) startDry(t *testing.T, c gateway.Configuration, within string) string {
	t.Helper()
	s.gateway.Kill()
	binary, err := shared.binary()
	must(t, err)
	folder := t.TempDir()
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	must(t, controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, s.identity))
	c.PlainHTTP(s.env.Registry.Host())
	c.Roles = []string{"admission"} // it does not scan, and reports stay as they are
	g, err := gateway.Start(t.Context(), gateway.Options{Program: binary, Folder: folder, Configuration: c, Args: []string{"--dry-verdicts" + within}})
	must(t, err)
	defer g.Kill()
	must(t, g.Ready(t.Context()))
	var said []string
	for line := range strings.Lines(g.Log()) {
		if !strings.HasPrefix(line, "{") {
			said = append(said, line)
		}
	}
	return strings.Join(said, "")
}

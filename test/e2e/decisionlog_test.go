package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// logged is a gateway under a pod's name that writes a decision log.
type logged struct {
	*scene
	log    string
	binary string
}

// begin starts the gateway, again with the same log.
func (l *logged) begin(t *testing.T) *gateway.Gateway {
	t.Helper()
	l.endLead(t)
	folder := t.TempDir()
	var c gateway.Configuration
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	must(t, controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, l.identity))
	c.PlainHTTP(l.env.Registry.Host())
	c.DecisionLog.Folder, c.DecisionLog.Fsync = l.log, "always"
	g, err := gateway.Start(t.Context(), gateway.Options{Program: l.binary, Folder: folder, Configuration: c, Env: []string{"POD_NAME=quaymaster-0"}})
	must(t, err)
	t.Cleanup(func() {
		g.Kill()
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", g.Log())
		}
	})
	must(t, g.Ready(t.Context()))
	return g
}

// TestDecisionLogSurvivesKill: under load, the gateway is killed (SIGKILL), twice. Of
// each request that was answered there is a line; the chain is whole; and the log goes on.
func TestDecisionLogSurvivesKill(t *testing.T) {
	s := unguarded(t, "decision-log")
	binary, err := shared.binary()
	must(t, err)
	l := &logged{scene: s, log: filepath.Join(t.TempDir(), "log"), binary: binary}
	s.gateway = s.start(t, gateway.Configuration{}) // its own clean-up takes the webhooks away in the end
	must(t, s.gateway.Ready(t.Context()))
	s.gateway.Kill()
	g := l.begin(t)
	s.gateway = g
	s.apply(t, env.Policy{Name: "decision-log", Namespaces: []string{"decision-log"}})
	signed, err := s.env.Signed("logged", "v1")
	must(t, err)

	var answered sync.Map
	for round := range 2 {
		l.load(t, g, round, signed.Name, &answered)
		g = l.begin(t)
		s.gateway = g
		eventually(t, func(ctx context.Context) error {
			_, err := s.dryRun(ctx, pod("after", signed.Name))
			return err
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	must(t, g.Stop(ctx))
	l.check(t, &answered)
}

// load creates pods in dry runs until some hundred are answered, and kills the gateway
// in the midst of them.
func (l *logged) load(t *testing.T, g *gateway.Gateway, round int, image string, answered *sync.Map) {
	t.Helper()
	const workers, enough = 16, 300
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var count atomic.Int64
	var group sync.WaitGroup
	reached := make(chan struct{})
	for worker := range workers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("r%d-w%d-n%d", round, worker, n)
				if _, err := l.dryRun(ctx, pod(name, image)); err != nil {
					continue // it is being killed
				}
				answered.Store(name, true)
				if count.Add(1) == enough {
					close(reached)
				}
			}
		})
	}
	select {
	case <-reached:
	case <-t.Context().Done():
	}
	g.Kill()
	stop()
	group.Wait()
}

// check verifies the log by the command line, and looks for each answer.
func (l *logged) check(t *testing.T, answered *sync.Map) {
	t.Helper()
	secret := l.secret(t)
	key := filepath.Join(t.TempDir(), "log.pub")
	must(t, os.WriteFile(key, secret, 0o600))
	out, err := exec.CommandContext(t.Context(), l.binary, "log", "verify", "--json", "--key", key, l.log).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var said struct {
		Summary decisionlog.Summary `json:"summary"`
	}
	must(t, json.Unmarshal(out, &said))
	if said.Summary.Lost != 0 || !said.Summary.Closed || said.Summary.Checkpoints == 0 {
		t.Errorf("got %s", out)
	}
	written := map[string]bool{}
	for line, err := range decisionlog.Read(filepath.Join(l.log, "quaymaster-0"), 1) {
		must(t, err)
		if d := line.Decision; d != nil {
			written[d.Object.Name] = true
			if strings.HasPrefix(d.Object.Name, "r0-") && (d.User == "" || d.UID == "" || !d.DryRun || d.Image == nil || d.Image.Digest == "" || len(d.Rules) == 0) {
				t.Errorf("a line lacks something: %s", line.Raw)
			}
		}
	}
	total := 0
	answered.Range(func(name, _ any) bool {
		total++
		if !written[name.(string)] {
			t.Errorf("%s was answered and is not in the log", name)
		}
		return true
	})
	t.Logf("%d were answered; %d lines, %d decisions, notes %v", total, said.Summary.Lines, said.Summary.Decisions, said.Summary.Notes)
}

// secret is the public key, from the Secret that the documentation names.
func (l *logged) secret(t *testing.T) []byte {
	t.Helper()
	found, err := l.client.CoreV1().Secrets("quaymaster").Get(t.Context(), "quaymaster-certificate", meta.GetOptions{})
	must(t, err)
	return found.Data["decision-log.pub"]
}

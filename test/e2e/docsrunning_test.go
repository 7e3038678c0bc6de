package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestRunningGateway runs the pages, and the blocks of other pages that name it, with
// commands for a running gateway: all of them for one release, with the features of the pages
// turned on, and with its pod on a node.
func TestRunningGateway(t *testing.T) {
	r := released(t)
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	g := r.startRunning(t, checkout)
	for _, name := range site.Names() {
		commands, err := site.Pages[name].Commands()
		if docs.Pages()[name] != docs.Running {
			commands, err = site.Pages[name].CommandsOf(t.Name())
		}
		must(t, err)
		if len(commands) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			must(t, os.CopyFS(folder, os.DirFS(g.base)))
			if err := g.shell(t, folder, name).Run(t.Context(), name, commands); err != nil {
				t.Error(err)
			}
		})
	}
}

// running is a release that pages take as given, and the folder that each of them finds.
type running struct {
	*kubelet
	whole                    *testing.T // of all pages: what one of them starts goes on
	base, programs, checkout string
	names, calls             map[string]string
}

func (r *release) startRunning(t *testing.T, checkout string) *running {
	t.Helper()
	plain := strings.TrimSuffix(strings.TrimPrefix(r.backends[0].Ready, "http://"), "/readyz")
	dashboard, local, localDashboard := freeAddress(t), freeAddress(t), freeAddress(t)
	r.dashboard = dashboard
	base, logs := t.TempDir(), t.TempDir()
	g := &running{
		whole:   t,
		kubelet: &kubelet{release: r, node: r.startNode(t, map[string]string{"8000": plain, "8001": dashboard})},
		base:    base, programs: programs(t), checkout: checkout,
		names: map[string]string{
			"registry.example": r.env.Registry.Host(), "quaymaster.example:9443": r.front.Address(), "/var/log/quaymaster": logs,
			"localhost:8000": local, "127.0.0.1:8001": localDashboard,
		},
		// The ports here are any; kubectl prints them at any time.
		calls: map[string]string{
			"port-forward deploy/quaymaster 8000":      "port-forward deploy/quaymaster " + port(t, local) + ":8000 > /dev/null",
			"port-forward deploy/quaymaster 8001:8001": "port-forward deploy/quaymaster " + port(t, localDashboard) + ":8001 > /dev/null",
			"port-forward pod/$LEADER 8001":            "port-forward pod/$LEADER " + port(t, localDashboard) + ":8001 > /dev/null",
			"--context production":                     "--context default",
			"clusterpolicy NAME":                       "clusterpolicy signed",
		},
	}
	values, err := yaml.Marshal(map[string]any{"replicas": 1, "configuration": map[string]any{
		"decisionLog": map[string]any{"folder": logs, "checkpointInterval": "1s"},
		"endpoints":   map[string]any{"api": map[string]any{"tokenReview": true, "groups": []string{"system:serviceaccounts:ci"}}},
	}})
	must(t, err, os.Symlink(r.deploy, filepath.Join(base, "deploy")), os.WriteFile(filepath.Join(base, "values.yaml"), values, 0o600))
	var commands []docs.Command
	for _, command := range strings.Split(strings.TrimSpace(g.script(t, "running/prepare")), "\n\n") {
		commands = append(commands, docs.Command{Text: command})
	}
	must(t, g.shell(t, base, "").Run(t.Context(), "prepare.sh", commands))
	return g
}

// script for what pages take as given; there may be none.
func (g *running) script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.checkout, "test", "docs", "testdata", filepath.FromSlash(name)+".sh"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// shell is where a page runs, beside a gateway.
func (g *running) shell(t *testing.T, folder, page string) docs.Shell {
	t.Helper()
	given := g.script(t, "before/common") + g.script(t, "running/common")
	if page != "" {
		given += g.script(t, "running/"+strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	return docs.Shell{
		Folder: folder, Before: given, Names: g.names, Calls: g.calls, Env: append(g.environment(folder, g.programs), "CHECKOUT="+g.checkout),
		After: func(_ context.Context, command string) error {
			g.after(t, command)
			return nil
		},
	}
}

// after does what a cluster with nodes would do then, or waits for what a reader would
// have waited for.
func (g *running) after(t *testing.T, command string) {
	switch {
	case strings.Contains(command, " port-forward ") && strings.HasSuffix(command, "&"):
		address := g.names["localhost:8000"]
		if strings.Contains(command, "8001") {
			address = g.names["127.0.0.1:8001"]
		}
		eventually(t, func(ctx context.Context) error {
			connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		})
	case strings.HasPrefix(command, "kubectl -n quaymaster scale deploy/quaymaster --replicas="):
		must(t, g.stop(t))
		if !strings.HasSuffix(command, "=0") {
			g.slot = 0 // at the addresses that the node knows
			g.start(g.whole)
		}
	case command == "kubectl apply -f policy.yaml":
		g.awaitDenial(t, g.env.Registry.Host()+"/shop/unsigned:v1")
	default:
		g.kubelet.after(t, command)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress(t.Context())
	must(t, err)
	return address
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, number, err := net.SplitHostPort(address)
	must(t, err)
	return number
}

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/peers"
)

// stage is the state that tests share: one control plane and one binary, for the one takes
// seconds to start and the other to build. Both are made when the first test needs them.
type stage struct {
	folder string
	plane  func() (*controlplane.ControlPlane, error)
	binary func() (string, error)
}

// oldestVariable, if it is set to anything, has the tests that share a control plane run at
// the oldest API server that the charts allow, in place of the newest.
const oldestVariable = "QUAYMASTER_OLDEST"

// shared is set by TestMain, the only way into a test that testing has.
var shared *stage

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m)) //nolint:forbidigo // as testing asks
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "quaymaster-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var started *controlplane.ControlPlane
	defer func() {
		if started != nil {
			started.Close()
		}
	}()
	shared = &stage{
		folder: folder,
		plane: sync.OnceValues(func() (*controlplane.ControlPlane, error) {
			var err error
			started, err = startPlane(ctx, filepath.Join(folder, "plane"))
			return started, err
		}),
		binary: sync.OnceValues(func() (string, error) {
			file := filepath.Join(folder, "quaymaster")
			return file, peers.BuildQuaymaster(ctx, file)
		}),
	}
	return m.Run()
}

func startPlane(ctx context.Context, folder string) (*controlplane.ControlPlane, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	return controlplane.Start(ctx, controlplane.Options{Folder: folder, Controllers: true, Oldest: os.Getenv(oldestVariable) != ""})
}

// plane returns the control plane that all tests share. A test uses namespaces
// of its own, and leaves nothing that holds for all of them.
func plane(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs a Kubernetes API server")
	}
	p, err := shared.plane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of kube-apiserver's log:\n%s", p.APIServer().Tail())
		}
	})
	return p
}

// must fails the test for any error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

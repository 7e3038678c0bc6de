package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runTimeout bounds one run of a program; nothing here reaches the network.
const runTimeout = time.Minute

// Program is a real program that a test runs.
type Program struct {
	Path string
	// Folder is where it runs and where its files go.
	Folder string
	// Env is its whole environment.
	Env []string
}

// Get returns a program that runs in a folder of its own with an empty home,
// so that nothing of this machine takes part.
func Get(t testing.TB, name string) *Program {
	t.Helper()
	path, err := Build(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return at(t, path)
}

// Quaymaster returns our own program, built from the checkout that the test
// runs in.
func Quaymaster(t testing.TB) *Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quaymaster")
	if err := BuildQuaymaster(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return at(t, path)
}

// BuildQuaymaster builds our own program, from the checkout that the test runs
// in, as a file.
func BuildQuaymaster(ctx context.Context, file string) error {
	folder, err := Checkout()
	if err != nil {
		return fmt.Errorf("build quaymaster: %w", err)
	}
	if err := buildOwn(ctx, folder, file); err != nil {
		return fmt.Errorf("build quaymaster: %w", err)
	}
	return nil
}

// buildOwn links the program once for all callers, since go build leaves an up-to-date file
// alone, and puts it into place: the next build makes another file of that name.
func buildOwn(ctx context.Context, checkout, file string) error {
	id := sha256.Sum256([]byte(checkout))
	folder, unlock, err := Folder(ctx, "quaymaster-"+hex.EncodeToString(id[:6]))
	if err != nil {
		return err
	}
	defer unlock()
	program := filepath.Join(folder, "quaymaster")
	if err := compile(ctx, checkout, program); err != nil {
		return err
	}
	if os.Link(program, file) == nil {
		return nil
	}
	return compile(ctx, checkout, file) // on another disk
}

func compile(ctx context.Context, checkout, file string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./cmd/quaymaster")
	build.Dir, build.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// Checkout returns the folder of the product's module, above the test's working
// directory.
func Checkout() (string, error) {
	folder, err := tools()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "..", ".."), nil
}

func at(t testing.TB, path string) *Program {
	folder := t.TempDir()
	return &Program{Path: path, Folder: folder, Env: []string{
		"HOME=" + folder,
		"DOCKER_CONFIG=" + folder,
		"XDG_CACHE_HOME=" + folder,
		"PATH=" + os.Getenv("PATH"),
		"COSIGN_PASSWORD=",
		"COSIGN_YES=true",
		// Loopback needs no proxy; other connections fail at once.
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
		"NO_COLOR=1",
	}}
}

// With returns the same program with more in its environment.
func (p *Program) With(env ...string) *Program {
	return &Program{Path: p.Path, Folder: p.Folder, Env: append(slices.Clone(p.Env), env...)}
}

// Run runs the program and returns both of its outputs.
func (p *Program) Run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, p.Path, args...)
	command.Dir, command.Env = p.Folder, p.Env
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s %s: %w\n%s", p.Path, strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// Must is Run for what has to work.
func (p *Program) Must(t testing.TB, args ...string) string {
	t.Helper()
	output, err := p.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// Command align answers: what would the suites' programs compile again although it is compiled
// already?
//
// It raises, in each module under test/tools, what this project requires too to this project's
// version, since the compiler's cache knows a package by the versions of all that it imports.
// The modules that decide what a program verifies or evaluates stay as it was released.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/quaymaster/quaymaster/test/peers"
)

// old are the modules of programs that are wanted as they were.
func old() []string {
	return []string{"kubernetes-oldest", peers.Helm3, peers.KubectlSigstore, peers.SLSAVerifier}
}

// released begin the paths of modules that stay as a program was released with them: they
// decide its answers. Of the last three, two cannot be fetched from every proxy, and the
// newest version of one has other types.
func released() []string {
	return []string{
		"github.com/sigstore/", "github.com/theupdateframework/", "github.com/in-toto/", "github.com/secure-systems-lab/",
		"github.com/notaryproject/", "github.com/transparency-dev/", "github.com/google/certificate-transparency-go",
		"github.com/google/cel-go", "cel.dev/", "k8s.io/",
		"github.com/buildkite/", "google.golang.org/genproto/googleapis/bytestream", "github.com/gobwas/glob",
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := align(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "align:", err)
		os.Exit(1) //nolint:forbidigo,gocritic // the exit status reports it
	}
}

func align(ctx context.Context) error {
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	ours := map[string]string{}
	for _, file := range []string{"go.mod", "test/go.mod", "test/e2e/go.mod"} {
		required, err := requirements(filepath.Join(checkout, file))
		if err != nil {
			return err
		}
		for path, version := range required {
			if semver.Compare(version, ours[path]) > 0 {
				ours[path] = version
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(checkout, "test", "tools", "*", "go.mod"))
	if err != nil {
		return err
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		if slices.Contains(old(), filepath.Base(folder)) {
			continue
		}
		if err := raise(ctx, folder, ours); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return nil
}

// raise gives a module its requirements in the given version too.
func raise(ctx context.Context, folder string, versions map[string]string) error {
	required, err := requirements(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	var higher []string
	for path, version := range required {
		stays := slices.ContainsFunc(released(), func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		if semver.Compare(versions[path], version) > 0 && !stays {
			higher = append(higher, path+"@"+versions[path])
		}
	}
	fmt.Printf("%s: %d modules\n", filepath.Base(folder), len(higher))
	if len(higher) == 0 {
		return nil
	}
	slices.Sort(higher)
	// Tests of what a program imports may import what no proxy has any more (tidy -e).
	for _, arguments := range [][]string{append([]string{"get"}, higher...), {"mod", "tidy", "-e"}} {
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", arguments[0], err, output)
		}
	}
	return nil
}

func requirements(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	module, err := modfile.ParseLax(file, text, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, require := range module.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	return versions, nil
}

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
)

// build describes the program. Its JSON is a contract.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"` // compiled from a checkout with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Follows are the projects whose policies and formats the program reads, with the versions of
	// their libraries, or the version whose behaviour is the reference.
	Follows []followed `json:"follows"`
}

type followed struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// kyvernoVersion is the version of Kyverno whose behaviour docs/kyverno-differences.md compares with.
const kyvernoVersion = "1.19"

// thisBuild reads what the toolchain wrote into the program.
func thisBuild(t command.Terminal) build {
	b := build{Version: t.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Follows: []followed{{"Kyverno", kyvernoVersion}}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if t.Release == "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.time":
			b.Time = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	versions := map[string]string{}
	for _, module := range info.Deps {
		versions[module.Path] = module.Version
	}
	for _, library := range []struct{ path, name string }{
		{"github.com/kyverno/api", "policies.kyverno.io"}, {"k8s.io/api", "Kubernetes"}, {"github.com/sigstore/sigstore-go", "sigstore-go"},
		{"github.com/sigstore/cosign/v2", "cosign"}, {"github.com/notaryproject/notation-go", "notation-go"},
	} {
		if version := versions[library.path]; version != "" {
			b.Follows = append(b.Follows, followed{library.name, ofProject(library.name, version)})
		}
	}
	return b
}

// ofProject turns the version of a library into that of its project: k8s.io/api v0.37.1 is of
// Kubernetes 1.37.1.
func ofProject(name, version string) string {
	version = strings.TrimPrefix(version, "v")
	if rest, ok := strings.CutPrefix(version, "0."); ok && name == "Kubernetes" {
		return "1." + rest
	}
	return version
}

func versionCommand(t command.Terminal) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: usage.NoArguments,
		Long: `Version prints the version, the commit and the toolchain of the program, and the
versions of the projects whose policies and formats it follows.

Exit status: 0, or 2 for wrong use.`,
		Example: `  quaymaster version
  quaymaster version -o json
  quaymaster --version`,
		RunE: func(*cobra.Command, []string) error {
			if err := output.CheckDocument(format); err != nil {
				return err
			}
			if format != output.Text {
				return output.WriteDocument(t.Out, format, thisBuild(t))
			}
			return writeVersion(t, thisBuild(t))
		},
	}
	output.RegisterDocument(cmd, "output", &format)
	return cmd
}

func writeVersion(t command.Terminal, b build) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "quaymaster %s\n", b.Version)
	if b.Commit != "" {
		changed := ""
		if b.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(w, "  commit\t%s (%s%s)\n", b.Commit, b.Time, changed)
	}
	fmt.Fprintf(w, "  go\t%s, %s\n", strings.TrimPrefix(b.Go, "go"), b.Platform)
	for _, one := range b.Follows {
		fmt.Fprintf(w, "  %s\t%s\n", one.Name, one.Version)
	}
	return w.Flush()
}

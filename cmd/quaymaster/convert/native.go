package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/native"
	"github.com/quaymaster/quaymaster/workload"
)

// nativeFlags configure the conversion to the API server's own policies.
type nativeFlags struct {
	kubernetes, static, at string
	exempt                 []string
	isExempt               func() bool // whether namespaces were named, or none on purpose
}

func nativeNames() []string {
	return []string{"kubernetes-version", "exempt-namespaces", "static", "static-path"}
}

func (f *nativeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubernetes, "kubernetes-version", "", "oldest `version` of the API servers, with --to native: "+native.Oldest+" to "+native.Newest+
		" (default: "+native.Oldest+", with --static "+native.FirstFile+")")
	flags.StringSliceVar(&f.exempt, "exempt-namespaces", nil, "`names` of namespaces in which the policies have no effect, with --to native; required with --static, \"\" for none")
	flags.StringVar(&f.static, "static", "", "write files for the API server's staticManifestsDir to a new `folder`, with --to native")
	flags.StringVar(&f.at, "static-path", "", "absolute `path` of that folder on the API server's machine (default: that of --static)")
	f.isExempt = func() bool { return flags.Changed("exempt-namespaces") }
}

// result converts documents.
func (f *nativeFlags) result(objects []workload.Object) ([]native.Policy, error) {
	policies, problems, err := native.Convert(objects, native.Options{Kubernetes: f.kubernetes, Exempt: f.exempt, Static: f.static != ""})
	if err == nil && len(problems) > 0 {
		err = &convert.Refusal{Problems: problems}
	}
	return policies, err
}

func (f *nativeFlags) convert(t command.Terminal, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	objects, err := read(t, args)
	if err != nil {
		return err
	}
	policies, err := f.result(objects)
	if err != nil {
		return err
	}
	if f.static != "" {
		return f.write(t, policies)
	}
	text, err := native.YAML(policies)
	if err != nil {
		return err
	}
	_, err = t.Out.Write(text)
	return err
}

// check refuses flags that contradict each other. Which namespaces start without the policies is a
// decision for files that an API server loads before anything runs: they hold for its own pods, too.
func (f *nativeFlags) check() error {
	switch {
	case f.static == "" && f.at != "":
		return errors.New("--static-path is the path of --static on another machine: name the folder to write, too")
	case f.static != "" && !f.isExempt():
		return errors.New("--static needs --exempt-namespaces: name those that must start without the policies, such as kube-system, or \"\" for none")
	case f.at != "" && !filepath.IsAbs(f.at):
		return fmt.Errorf("--static-path %s: want an absolute path", f.at)
	}
	return nil
}

// write writes the files into a new folder. An API server loads everything that it finds there, so that
// nothing is added to what exists.
func (f *nativeFlags) write(t command.Terminal, policies []native.Policy) error {
	at := f.at
	if at == "" {
		absolute, err := filepath.Abs(f.static)
		if err != nil {
			return fmt.Errorf("--static: %w", err)
		}
		at = absolute
	}
	files, err := native.Files(policies, at)
	if err != nil {
		return err
	}
	have, err := os.ReadDir(f.static)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--static: %w", err)
	}
	if len(have) > 0 {
		return fmt.Errorf("--static %s: the folder is not empty, and an API server loads every file in it: name a new one", f.static)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(f.static, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // policies are no secret, and the API server may run as another user
			return fmt.Errorf("--static: %w", err)
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil { //nolint:gosec // the same
			return fmt.Errorf("--static: %w", err)
		}
		if _, err := fmt.Fprintln(t.Out, file); err != nil {
			return err
		}
	}
	return nil
}

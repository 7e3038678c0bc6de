// Package flagsource sets flags that the command line leaves out: from environment variables, from the
// file of --config, and from the user's own file (docs/cli.md, "Flags from other sources"). Flags that
// can make a result less strict are taken from the command line and the file of --config alone, since a
// pull request may bring everything else.
package flagsource

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/internal/fieldname"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
	"github.com/quaymaster/quaymaster/report"
)

// ConfigFlag is the flag that names a file of flags.
const ConfigFlag = "config"

// prefix is that of the variables: QUAYMASTER_FAIL_ONLY sets --fail-only.
const prefix = "QUAYMASTER_"

// annotation of a flag holds the source of its value.
const annotation = "quaymaster.dev/source"

// The type of a file of flags.
const (
	apiVersion = "quaymaster.dev/v1alpha1"
	kind       = "Flags"
)

// maxFile is the length of the largest file of flags in bytes: it has some lines.
const maxFile = 1 << 20

// document is a file of flags. Commands are named without the program, such as "log verify".
type document struct {
	APIVersion string                    `json:"apiVersion"`
	Kind       string                    `json:"kind"`
	Flags      map[string]any            `json:"flags"`
	Commands   map[string]map[string]any `json:"commands"`
}

// file is a document with its path.
type file struct {
	document
	path    string
	text    []byte
	trusted bool // it may set every flag
}

// Register adds --config to a program.
func Register(root *cobra.Command) {
	root.PersistentFlags().String(ConfigFlag, "", "`file` of flags (docs/cli.md)")
}

// Apply sets the flags of a command that the command line leaves out. The file of --config has
// precedence over variables, and these over the user's own file: the most explicit source decides.
// A command with a --config of its own has its settings from there alone.
func Apply(cmd *cobra.Command, env func(string) string) error {
	if cmd.InheritedFlags().Lookup(ConfigFlag) == nil {
		return nil
	}
	files, err := read(cmd, env)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.check(cmd); err != nil {
			return err
		}
	}
	path := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()), " ")
	var errs error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if errs == nil && !f.Changed && !isOwn(f.Name) {
			errs = apply(cmd, f, path, env, files)
		}
	})
	return errs
}

// isOwn reports whether a flag is about the program itself.
func isOwn(name string) bool { return name == "help" || name == "version" || name == ConfigFlag }

// Of returns the flags of a command that Apply has set, by their names.
func Of(cmd *cobra.Command) []report.Flag {
	var flags []report.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if source := f.Annotations[annotation]; len(source) > 0 {
			values := make([]string, len(source)-1)
			for i, value := range source[1:] {
				values[i] = redact.Text(value) // a presigned URL
			}
			flags = append(flags, report.Flag{Name: f.Name, Values: values, Source: source[0]})
		}
	})
	return flags
}

// apply sets one flag from the first source that has it.
func apply(cmd *cobra.Command, f *pflag.Flag, path string, env func(string) string, files []file) error {
	for _, from := range files {
		if from.trusted {
			if found, err := from.apply(cmd, f, path); found || err != nil {
				return err
			}
		}
	}
	variable := prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	if text := env(variable); text != "" {
		values := strings.Split(text, "\n")
		if reason := refusal(f, values); reason != "" {
			return fmt.Errorf("%s: %s", variable, reason)
		}
		if err := set(cmd, f, variable, values); err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
		return nil
	}
	for _, from := range files {
		if !from.trusted {
			if found, err := from.apply(cmd, f, path); found || err != nil {
				return err
			}
		}
	}
	return nil
}

// apply sets one flag from the file, if that has it.
func (f *file) apply(cmd *cobra.Command, flag *pflag.Flag, path string) (found bool, err error) {
	field := "commands." + path + "." + flag.Name
	value, found := f.Commands[path][flag.Name]
	if !found {
		field = "flags." + flag.Name
		value, found = f.Flags[flag.Name]
	}
	if !found {
		return false, nil
	}
	values, err := texts(value)
	if err != nil {
		return true, f.fail(field, err)
	}
	if reason := refusal(flag, values); reason != "" && !f.trusted {
		return true, f.fail(field, errors.New(reason))
	}
	if err := set(cmd, flag, f.path, values); err != nil {
		return true, f.fail(field, err)
	}
	return true, nil
}

// fail returns an error about a field, with the file and the line.
func (f *file) fail(field string, err error) error {
	if line := yamlline.Of(f.text, field); line > 0 {
		return fmt.Errorf("%s: line %d: %s: %w", f.path, line, field, err)
	}
	return fmt.Errorf("%s: %s: %w", f.path, field, err)
}

// set sets a flag; one that is no list takes one value.
func set(cmd *cobra.Command, f *pflag.Flag, source string, values []string) error {
	list, isList := f.Value.(pflag.SliceValue)
	if !isList && len(values) != 1 {
		return fmt.Errorf("--%s takes one value", f.Name)
	}
	if isList {
		if err := list.Replace(values); err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
		f.Changed = true
	} else if err := cmd.Flags().Set(f.Name, values[0]); err != nil {
		return usage.ValueError(err)
	}
	return cmd.Flags().SetAnnotation(f.Name, annotation, append([]string{source}, values...))
}

// texts are the values of a flag in a file.
func texts(value any) ([]string, error) {
	switch value := value.(type) {
	case string:
		return []string{value}, nil
	case bool, float64, int64:
		return []string{fmt.Sprint(value)}, nil
	case []any:
		var all []string
		for _, one := range value {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("want a list of strings")
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, fmt.Errorf("want a string, a number, true, false or a list of strings")
}

// read reads the file of --config, which must be there, and the user's own.
func read(cmd *cobra.Command, env func(string) string) ([]file, error) {
	var files []file
	if flag := cmd.Flags().Lookup(ConfigFlag); flag != nil && flag.Changed {
		f, err := load(flag.Value.String())
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", ConfigFlag, err)
		}
		f.trusted = true
		files = append(files, f)
	}
	path := ownPath(env)
	if path == "" {
		return files, nil
	}
	// A home that is no folder, or of another user, has no such file.
	if _, err := os.Stat(path); err != nil {
		return files, nil //nolint:nilerr // an optional file
	}
	f, err := load(path)
	return append(files, f), err
}

// ownPath is the user's own file; empty without a home.
func ownPath(env func(string) string) string {
	folder := env("XDG_CONFIG_HOME")
	if home := env("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(folder) { // it would be in the working folder, which others may write
		return ""
	}
	return filepath.Join(folder, "quaymaster", "flags.yaml")
}

func load(path string) (file, error) {
	f := file{path: path}
	info, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	if info.Size() > maxFile {
		return f, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if documents := bytes.Count(append([]byte("\n"), text...), []byte("\n---")); documents > 1 || documents == 1 && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("---")) {
		return f, fmt.Errorf("%s has more than one document", path)
	}
	f.text = text
	text, err = yaml.YAMLToJSONStrict(text)
	if err != nil {
		return f, fmt.Errorf("%s: YAML: %w", path, yamlline.Readable(err))
	}
	problems, err := strictjson.Decode(text, &f.document)
	if len(problems) > 0 {
		problems[0].What += spelling.DidYouMean(fieldname.Nearest(problems[0].Path, reflect.TypeFor[document]()))
		err = problems[0]
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, yamlline.Locate(f.text, err))
	}
	if f.APIVersion != apiVersion || f.Kind != kind {
		return f, fmt.Errorf("%s: want apiVersion %s and kind %s, found %q and %q", path, apiVersion, kind, f.APIVersion, f.Kind)
	}
	return f, nil
}

// check refuses names that no command has: a misspelt flag would have no effect.
func (f *file) check(cmd *cobra.Command) error {
	known, all := map[string][]string{}, []string{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), cmd.Root().CommandPath()), " ")
		known[path] = []string{}
		c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !isOwn(flag.Name) {
				known[path], all = append(known[path], flag.Name), append(all, flag.Name)
			}
		})
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(cmd.Root())
	for name := range f.Flags {
		if err := f.known("flags", name, all); err != nil {
			return err
		}
	}
	for command, flags := range f.Commands {
		if err := f.known("commands", command, slices.Collect(maps.Keys(known))); err != nil {
			return err
		}
		for name := range flags {
			if err := f.known("commands."+command, name, known[command]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *file) known(path, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	return f.fail(path+"."+name, fmt.Errorf("there is no such name%s", spelling.DidYouMean(spelling.Similar(name, names))))
}

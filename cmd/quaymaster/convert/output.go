package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/suites"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/document"
)

// standardInputFile is the file of the policies that come by standard input.
const standardInputFile = "policies.yaml"

// tree are the files of a folder of results.
type tree struct {
	folder string
	// roots are the folders of the sources: a file below one keeps its path.
	roots []string
	files map[string][]byte
	// tests are the suites, by their paths.
	tests map[string][]byte
	// suiteFiles are the converted ones.
	suiteFiles []string
}

// newTree reads the suites in the folders of policies, and those next to their files.
func newTree(folder string, args []string) (*tree, error) {
	out := &tree{folder: folder, files: map[string][]byte{}, tests: map[string][]byte{}}
	var places []string
	for _, arg := range args {
		root, err := rootOf(arg)
		if err != nil {
			return nil, err
		}
		out.roots = append(out.roots, root)
		switch {
		case arg == "-":
		case root == filepath.Dir(arg): // a file
			for _, name := range []string{suite.FileName, filepath.Join(".kyverno-test", suite.FileName)} {
				if _, err := os.Stat(filepath.Join(root, name)); err == nil {
					places = append(places, filepath.Join(root, name))
				}
			}
		default:
			places = append(places, root)
		}
	}
	files, err := suite.Find(places, suite.FileName)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		out.tests[file], err = document.ReadFile(file)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tested returns the objects with which suites test rules.
func (o *tree) tested() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(o.tests)) {
		for policy, rules := range suites.Tested(o.tests[file]) {
			if all[policy] == nil {
				all[policy] = map[string]string{}
			}
			for rule, objects := range rules {
				all[policy][rule] += objects + "\n"
			}
		}
	}
	return all
}

// convert writes policies and suites as they lie in their folders.
func (o *tree) convert(ctx context.Context, t command.Terminal, result cel.Result) error {
	made, err := o.policies(result)
	if err != nil {
		return err
	}
	problems, err := o.suites(result, made)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(t.Err, "not converted:", p.Error()); err != nil {
			return err
		}
	}
	if err := o.write(t); err != nil {
		return err
	}
	for _, file := range o.suiteFiles {
		o.files[file], err = suites.Settle(ctx, file)
		if err == nil {
			err = os.WriteFile(file, o.files[file], 0o644) //nolint:gosec // policies are no secret
		}
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	return nil
}

// rootOf is the folder that an argument names, or that of its file.
func rootOf(arg string) (string, error) {
	if arg == "-" {
		return "", nil
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return filepath.EvalSymlinks(arg)
	}
	return filepath.Dir(arg), nil
}

// at is where the result of a file is.
func (o *tree) at(file string) (string, error) {
	if file == manifest.StandardInput {
		return filepath.Join(o.folder, standardInputFile), nil
	}
	for _, root := range o.roots {
		path, err := filepath.Rel(root, file)
		if err != nil || root == "" || path == ".." || strings.HasPrefix(path, ".."+string(filepath.Separator)) {
			continue
		}
		target := filepath.Join(o.folder, path)
		if same(target, file) {
			return "", fmt.Errorf("--output %s: %s would replace its source: name another folder", o.folder, target)
		}
		return target, nil
	}
	return "", fmt.Errorf("--output: %s is in none of the folders", file)
}

// same reports whether two names are those of one file.
func same(a, b string) bool {
	x, notX := os.Stat(a)
	y, notY := os.Stat(b)
	return notX == nil && notY == nil && os.SameFile(x, y)
}

// policies adds the files of policies, with the other documents in them, and returns them by those of their sources.
func (o *tree) policies(result cel.Result) (map[string]string, error) {
	byFile := map[string][]cel.Policy{}
	var order []string
	for _, p := range slices.Concat(result.Policies, result.Rest) {
		if byFile[p.File] == nil {
			order = append(order, p.File)
		}
		byFile[p.File] = append(byFile[p.File], p)
	}
	for _, p := range result.Beside {
		if byFile[p.File] != nil {
			byFile[p.File] = append(byFile[p.File], p)
		}
	}
	made := map[string]string{}
	for _, file := range order {
		target, err := o.at(file)
		if err != nil {
			return nil, err
		}
		if o.files[target] != nil {
			return nil, fmt.Errorf("--output %s: the results of two files have the path %s: convert their folders one by one", o.folder, target)
		}
		o.files[target], err = cel.YAML(byFile[file])
		if err != nil {
			return nil, err
		}
		made[filepath.Clean(file)] = target
	}
	return made, nil
}

// suites adds the suites.
func (o *tree) suites(result cel.Result, made map[string]string) (problems []suites.Problem, err error) {
	options := suites.Options{Rest: result.Rest, Files: map[string]string{}}
	for from, to := range made {
		from, to, err = absolute(from, to)
		if err != nil {
			return nil, err
		}
		options.Files[from] = to
	}
	for _, p := range result.Policies {
		p.File, err = filepath.Abs(p.File)
		if err != nil {
			return nil, err
		}
		options.Policies = append(options.Policies, p)
	}
	for _, file := range slices.Sorted(maps.Keys(o.tests)) {
		target, err := o.at(file)
		if err != nil {
			return nil, err
		}
		options.From, options.To, err = absolute(filepath.Dir(file), filepath.Dir(target))
		if err != nil {
			return nil, err
		}
		converted, err := suites.Convert(o.tests[file], options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range converted.Problems {
			p.Path = file + ": " + p.Path
			problems = append(problems, p)
		}
		if !converted.Converted || converted.Text == nil {
			continue
		}
		o.files[target], o.suiteFiles = converted.Text, append(o.suiteFiles, target)
		for name, values := range converted.Values {
			o.files[filepath.Join(filepath.Dir(target), name)] = values
		}
	}
	return problems, nil
}

// absolute returns two paths as absolute ones.
func absolute(a, b string) (string, string, error) {
	x, err := filepath.Abs(a)
	if err != nil {
		return "", "", err
	}
	y, err := filepath.Abs(b)
	return x, y, err
}

// write writes the files.
func (o *tree) write(t command.Terminal) error {
	for _, file := range slices.Sorted(maps.Keys(o.files)) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // policies are no secret
			return fmt.Errorf("--output: %w", err)
		}
		if err := os.WriteFile(file, o.files[file], 0o644); err != nil { //nolint:gosec // the same
			return fmt.Errorf("--output: %w", err)
		}
		if _, err := fmt.Fprintln(t.Out, file); err != nil {
			return err
		}
	}
	return nil
}

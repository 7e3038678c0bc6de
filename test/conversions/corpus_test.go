package conversions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

// converted is a policy, with its result or the reasons why there is none.
type converted struct {
	file     string
	pair     equality.Pair
	beside   []workload.Object
	problems []cel.Problem
	err      error
	hasSuite bool
}

func (c *converted) name() string { return c.file + " " + c.pair.Name }

// roots are the folders of policies: those of this repository, and of other projects.
func roots(t testing.TB) []string {
	t.Helper()
	all := []string{"../.."}
	if samples := os.Getenv("QUAYMASTER_SAMPLES"); samples != "" {
		all = append(all, samples)
		if library := filepath.Join(samples, "..", "library"); isFolder(library) {
			all = append(all, library)
		}
	} else {
		t.Log("policies of other projects are left out; set QUAYMASTER_SAMPLES to their folder")
	}
	return all
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// corpus converts every policy and exception of kyverno.io in the folders, each once.
func corpus(t testing.TB) (all []converted) {
	t.Helper()
	seen := map[string]bool{}
	for _, root := range roots(t) {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules") {
				if err == nil {
					err = fs.SkipDir
				}
				return err
			}
			if ext := filepath.Ext(path); entry.IsDir() || ext != ".yaml" && ext != ".yml" {
				return nil
			}
			for _, document := range append(policiesOf(path), exceptionsOf(path)...) {
				key := string(document.JSON())
				if seen[key] {
					continue
				}
				seen[key] = true
				if document.Kind() == "PolicyException" {
					all = append(all, convertException(path, document))
					continue
				}
				all = append(all, convert(path, document))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// documentsOf reads the documents of a file; one that is no manifest has none.
func documentsOf(path string) []workload.Object {
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte("kyverno.io/")) {
		return nil
	}
	objects, err := workload.Read(bytes.NewReader(text), path)
	if err != nil {
		return nil
	}
	return objects
}

// exceptionsOf reads the exceptions of a file.
func exceptionsOf(path string) (exceptions []workload.Object) {
	for _, o := range documentsOf(path) {
		if spec, _ := o.Content()["spec"].(map[string]any); o.Group() == "kyverno.io" && o.Kind() == "PolicyException" && spec["exceptions"] != nil {
			exceptions = append(exceptions, o)
		}
	}
	return exceptions
}

// policiesOf reads the policies of a file.
func policiesOf(path string) (policies []workload.Object) {
	for _, o := range documentsOf(path) {
		if spec, _ := o.Content()["spec"].(map[string]any); spec == nil || spec["rules"] == nil && spec["schedule"] == nil {
			continue // what a test of another engine expects of a policy
		}
		if o.Group() == "kyverno.io" && slices.Contains([]string{"ClusterPolicy", "Policy", "CleanupPolicy", "ClusterCleanupPolicy"}, o.Kind()) {
			policies = append(policies, o)
		}
	}
	return policies
}

// convert converts one policy.
func convert(file string, policy workload.Object) converted {
	c := converted{file: file, pair: equality.Pair{Name: policy.Name(), Source: []workload.Object{policy}}, hasSuite: hasSuite(filepath.Dir(file))}
	result, err := cel.Convert(c.pair.Source, cel.Options{})
	c.problems, c.err = result.Problems, err
	if err != nil || len(c.problems) > 0 {
		return c
	}
	var text []byte
	text, c.err = cel.YAML(result.Policies)
	if c.err != nil {
		return c
	}
	c.pair.Result, c.err = workload.Read(bytes.NewReader(text), "the result")
	if c.err != nil {
		c.err = fmt.Errorf("%w in\n%s", c.err, text)
	}
	return c
}

// convertException converts an exception with the policies of its folder: its problems are those that they do not have
// without it. It has no result that is compared, for an exception decides with its policies alone.
func convertException(file string, exception workload.Object) converted {
	folder := filepath.Dir(file)
	c := converted{file: file, pair: equality.Pair{Name: exception.Name(), Source: []workload.Object{exception}}, hasSuite: hasSuite(folder)}
	var policies []workload.Object
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	for _, name := range files {
		policies = append(policies, policiesOf(name)...)
	}
	before, err1 := cel.Convert(policies, cel.Options{})
	after, err2 := cel.Convert(append(policies, exception), cel.Options{})
	c.err = errors.Join(err, err1, err2)
	c.problems = slices.DeleteFunc(after.Problems, func(p cel.Problem) bool {
		return slices.ContainsFunc(before.Problems, func(other cel.Problem) bool { return other.Path == p.Path })
	})
	return c
}

func hasSuite(folder string) bool {
	for _, name := range []string{"kyverno-test.yaml", ".kyverno-test/kyverno-test.yaml", "../.kyverno-test/kyverno-test.yaml", "../kyverno-test.yaml"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// number is that of a variable of the environment.
func number(t testing.TB, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 1 {
		t.Fatalf("%s: %q is no number", name, text)
	}
	return value
}

// each runs a function for each number below n, on all cores.
func each(n int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// shown is a difference as text.
func shown(d *equality.Difference) string {
	return fmt.Sprintf("%s: %s of %v, old %v, by %v, namespace %v, beside %v\n\tsource: %+v\n\tresult: %+v",
		d.By, d.Sample.Operation, d.Sample.Object, d.Sample.Old, d.Sample.User, d.Sample.NamespaceLabels, d.Sample.Existing, d.Source, d.Result)
}

func check(ctx context.Context, c *converted, objects int, isQuick bool) (*equality.Report, error) {
	return equality.Check(ctx, equality.Options{
		Source: c.pair.Source, Result: c.pair.Result, Beside: c.beside, Objects: objects, Seed: 1, UntilDifferent: isQuick,
	})
}

// constructOf is a refused part without its place: one name for a construct in all policies.
func constructOf(p cel.Problem) string {
	path := p.Path[strings.LastIndex(p.Path, ": ")+1:]
	fields := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' || r >= '0' && r <= '9' || r == ' ' })
	if len(fields) > 4 {
		fields = fields[:4]
	}
	found := p.Found
	if len(found) > 70 {
		found = found[:70]
	}
	return strings.Join(fields, ".") + ": " + found
}

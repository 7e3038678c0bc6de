package mutants_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/mutants"
	"github.com/quaymaster/quaymaster/test/peers"
)

// trees hold what decides.
func trees() []string { return []string{"attest", "gate", "image", "policy", "registry", "verify"} }

// TestPlanIsWhole: a package is mutated, or it has a reason why not; and a list of survivors
// belongs to a package that is mutated, with a reason for each.
func TestPlanIsWhole(t *testing.T) {
	checkout, err := peers.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := mutants.ReadPlan(".")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, chosen := range slices.Concat(plan.Packages, plan.Later) {
		named = append(named, chosen.Path)
		list, err := mutants.ReadSurvivors(".", chosen.Path)
		if err != nil {
			t.Error(err)
		}
		for _, group := range list {
			if strings.TrimSpace(group.Reason) == "" || len(group.Mutants) == 0 {
				t.Errorf("survivors of %s: want a reason and mutants, got %q, %q", chosen.Path, group.Reason, group.Mutants)
			}
		}
	}
	for _, left := range plan.LeftOut {
		named = append(named, left.Path)
		if left.Reason == "" {
			t.Errorf("%s is left out without a reason", left.Path)
		}
	}
	slices.Sort(named)
	if want := packages(t, checkout); !slices.Equal(named, want) {
		t.Errorf("packages.yaml names %q, want %q", named, want)
	}
	lists(t, plan)
}

// packages returns the packages of the trees.
func packages(t *testing.T, checkout string) []string {
	t.Helper()
	var found []string
	for _, tree := range trees() {
		err := filepath.WalkDir(filepath.Join(checkout, tree), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			folder, err := filepath.Rel(checkout, filepath.Dir(path))
			if err == nil && !slices.Contains(found, folder) {
				found = append(found, folder)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(found)
	return found
}

// lists refuses lists of packages that are not mutated.
func lists(t *testing.T, plan mutants.Plan) {
	t.Helper()
	err := filepath.WalkDir("survivors", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(strings.TrimSuffix(filepath.ToSlash(path), ".yaml"), "survivors/")
		if !slices.ContainsFunc(slices.Concat(plan.Packages, plan.Later), func(c mutants.Chosen) bool { return c.Path == name }) {
			t.Errorf("%s lists survivors of a package that is not mutated", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Plan lists the packages that are mutated, and those that are not.
type Plan struct {
	// Packages are those with a complete list of survivors.
	Packages []Chosen `json:"packages"`
	// Later are those without a review of their survivors; they are mutated if they are
	// asked for by name.
	Later   []Chosen `json:"later"`
	LeftOut []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"leftOut"`
}

// Chosen is a package that is mutated.
type Chosen struct {
	Path string `json:"path"`
	// Tests are packages that import it; their tests are run if its own pass.
	Tests []string `json:"tests,omitempty"`
	// Files are those that are mutated; none means all of them.
	Files []string `json:"files,omitempty"`
}

// Match returns an expression for the names of the mutants of the package; nil for all.
func (c Chosen) Match() *regexp.Regexp {
	if len(c.Files) == 0 {
		return nil
	}
	files := make([]string, len(c.Files))
	for i, file := range c.Files {
		files[i] = regexp.QuoteMeta(file)
	}
	return regexp.MustCompile("^(" + strings.Join(files, "|") + ") ")
}

// Survivors are the mutants of a package that may survive, by the reason.
type Survivors []struct {
	Reason  string   `json:"reason"`
	Mutants []string `json:"mutants"`
}

// ReadPlan reads the plan in a folder.
func ReadPlan(folder string) (Plan, error) {
	var plan Plan
	return plan, read(filepath.Join(folder, "packages.yaml"), &plan)
}

// Select returns the packages that patterns name: a path, or one that ends in /... for all
// below it, too. No pattern means all, but for those that are for later.
func (p Plan) Select(patterns ...string) ([]Chosen, error) {
	if len(patterns) == 0 {
		return p.Packages, nil
	}
	var list []Chosen
	for _, pattern := range patterns {
		pattern = strings.TrimPrefix(strings.TrimSuffix(pattern, "/"), "./")
		above, below := strings.CutSuffix(pattern, "/...")
		found := false
		for _, c := range slices.Concat(p.Packages, p.Later) {
			if c.Path == above || below && strings.HasPrefix(c.Path, above+"/") {
				found = true
				list = append(list, c)
			}
		}
		if !found {
			return nil, fmt.Errorf("%s is no package in packages.yaml", pattern)
		}
	}
	return list, nil
}

// ReadSurvivors reads the list of a package in a folder. A package without a file has none.
func ReadSurvivors(folder, path string) (Survivors, error) {
	var list Survivors
	err := read(filepath.Join(folder, "survivors", filepath.FromSlash(path)+".yaml"), &list)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return list, err
}

func read(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Compare lists the differences between the list and the survivors: a mutant without a reason,
// and a reason without a mutant, which was killed or no longer exists.
func (s Survivors) Compare(survived []string) []string {
	var problems []string
	listed := map[string]bool{}
	for _, group := range s {
		if strings.TrimSpace(group.Reason) == "" {
			problems = append(problems, fmt.Sprintf("survivors without a reason: %q", group.Mutants))
		}
		for _, name := range group.Mutants {
			if listed[name] {
				problems = append(problems, "listed twice: "+name)
			}
			listed[name] = true
			if !slices.Contains(survived, name) {
				problems = append(problems, "listed, and killed now or gone: "+name)
			}
		}
	}
	for _, name := range survived {
		if !listed[name] {
			problems = append(problems, "survived, and not listed: "+name)
		}
	}
	return problems
}

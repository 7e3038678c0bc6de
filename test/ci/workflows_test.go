package ci

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// workflow is what is used of a workflow.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Timeout     int               `json:"timeout-minutes"`
		Strategy    struct {
			Matrix map[string][]string `json:"matrix"`
		} `json:"strategy"`
		Steps []struct {
			Uses string         `json:"uses"`
			Run  string         `json:"run"`
			With map[string]any `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

func workflows(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*.yaml"))
	check(t, err)
	if len(files) < 2 {
		t.Fatalf("workflows %q", files)
	}
	texts := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		check(t, err)
		texts[file] = string(content)
	}
	return texts
}

// TestActionlint has the linter of workflows read them, and one with a mistake.
func TestActionlint(t *testing.T) {
	if testing.Short() {
		t.Skip("builds actionlint")
	}
	linter := peers.Get(t, peers.Actionlint)
	for file, text := range workflows(t) {
		at := filepath.Join(linter.Folder, filepath.Base(file))
		check(t, os.WriteFile(at, []byte(text), 0o600))
		if said, err := linter.Run(t.Context(), "-shellcheck=", at); err != nil {
			t.Errorf("%s:\n%s", file, said)
		}
		check(t, os.WriteFile(at, []byte(strings.Replace(text, "runs-on:", "run-on:", 1)), 0o600))
		if _, err := linter.Run(t.Context(), "-shellcheck=", at); err == nil {
			t.Errorf("%s: a misspelt key passes", file)
		}
	}
}

// TestWorkflowsArePinned: actions are named by commit with their version beside it, no
// expression stands in a script, and a token may do what its job says and no more.
func TestWorkflowsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^\s*- uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	for file, text := range workflows(t) {
		var w workflow
		check(t, yaml.Unmarshal([]byte(text), &w))
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: permissions of all jobs: %v, want {}", file, w.Permissions)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(strings.TrimRight(line, "\n")) {
				t.Errorf("%s: %s is not pinned", file, strings.TrimSpace(line))
			}
		}
		for name, job := range w.Jobs {
			if len(job.Permissions) == 0 || job.Timeout == 0 {
				t.Errorf("%s: %s has no permissions or no timeout", file, name)
			}
			for _, step := range job.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %s: an expression in a script: %s", file, name, step.Run)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: %s leaves its token in the checkout", file, name)
				}
			}
			if writes := job.Permissions["packages"] == "write"; writes && name != "publish" {
				t.Errorf("%s: %s may push", file, name)
			}
		}
	}
}

// TestNightlyTargets: what each night plays is a target of the Makefile, and said by its help.
func TestNightlyTargets(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	check(t, err)
	var w workflow
	check(t, yaml.Unmarshal([]byte(workflows(t)[filepath.Join(root, ".github", "workflows", "nightly.yaml")]), &w))
	targets := w.Jobs["night"].Strategy.Matrix["target"]
	if len(targets) == 0 {
		t.Fatal("nothing is played")
	}
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*## `).Match(makefile) {
			t.Errorf("the Makefile has no target %q", target)
		}
	}
}

// TestReleaseVerifiesBeforeItTags keeps the order of the workflow's steps.
func TestReleaseVerifiesBeforeItTags(t *testing.T) {
	for file, text := range workflows(t) {
		if filepath.Base(file) != "release.yaml" {
			continue
		}
		last := 0
		for _, step := range []string{"publish.sh push", "publish.sh sign", "publish.sh checksums", "publish.sh promote", "gh release create"} {
			at := strings.Index(text, step)
			if at < last {
				t.Errorf("%q stands at %d, before what it rests on (%d)", step, at, last)
			}
			last = at
		}
		return
	}
	t.Error("there is no release.yaml")
}

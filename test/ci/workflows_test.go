package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// workflow is the part of a workflow that is used here.
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

// TestWorkflowsArePinned: actions are pinned by commit with a version comment, no
// expression is in a script, and a token has only the permissions of its job.
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

// TestTargets requires that the workflows run targets that the Makefile has and its help
// explains, and that those of a commit are all that .ci/run runs.
func TestTargets(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	check(t, err)
	files := workflows(t)
	targets := func(file, job string) []string {
		var w workflow
		check(t, yaml.Unmarshal([]byte(files[filepath.Join(root, ".github", "workflows", file)]), &w))
		list := w.Jobs[job].Strategy.Matrix["target"]
		for _, target := range list {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*## `).Match(makefile) {
				t.Errorf("%s: the Makefile has no target %q", file, target)
			}
		}
		return list
	}
	if len(targets("nightly.yaml", "night")) == 0 {
		t.Error("nightly.yaml runs nothing")
	}

	parts := regexp.MustCompile(`(?m)^suites: programs .*\n\t\$\(MAKE\) -j3 --output-sync=target (.*)$`).FindSubmatch(makefile)
	if parts == nil {
		t.Fatal("the Makefile has no parts of the suites")
	}
	run, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	check(t, err)
	var want []string
	for _, lane := range regexp.MustCompile(`lane [a-z]+ make ([a-z]+)`).FindAllSubmatch(run, -1) {
		switch target := string(lane[1]); target {
		case "vulnerabilities": // of the day and not of the commit
		case "suites":
			want = append(want, strings.Fields(string(parts[1]))...)
		default:
			want = append(want, target)
		}
	}
	got := targets("ci.yaml", "check")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) < 5 {
		t.Errorf("ci.yaml runs %q, and .ci/run %q", got, want)
	}
}

// TestOwnSuitesNeedNoOtherProgram requires of the suites of make test that they take no program
// that is built from another module.
func TestOwnSuitesNeedNoOtherProgram(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	check(t, err)
	own := regexp.MustCompile(`(?m)^OWN := (.*)$`).FindSubmatch(makefile)
	if own == nil {
		t.Fatal("the Makefile names no suites of its own")
	}
	builds := regexp.MustCompile(`peers\.(Get|Build|StartRegistry)\(`)
	if text, err := os.ReadFile("workflows_test.go"); err != nil || !builds.Match(text) {
		t.Fatalf("this suite builds programs, and it is not seen: %v", err)
	}
	for _, folder := range strings.Fields(string(own[1])) {
		files, err := filepath.Glob(filepath.Join("..", strings.TrimSuffix(folder, "/..."), "*.go"))
		check(t, err)
		if len(files) == 0 {
			t.Errorf("%s has no files", folder)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			check(t, err)
			if found := builds.Find(text); found != nil {
				t.Errorf("%s calls %s...)", file, found)
			}
		}
	}
}

// TestPrerequisites runs the script where all programs are there, where they are installed, and
// where that fails.
func TestPrerequisites(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "prerequisites"))
	check(t, err)
	program := func(text string) string { return "#!/bin/sh\n" + text + "\n" }
	for _, row := range []struct {
		reason   string
		programs map[string]string
		passes   bool
		want     string
	}{
		{"all are there", map[string]string{"redis-server": "", "chromium": "", "apt-get": "exit 9"}, true, ""},
		{"another name of the browser", map[string]string{"redis-server": "", "google-chrome": "", "apt-get": "exit 9"}, true, ""},
		{"both are installed", map[string]string{"apt-get": `echo "$@" >>"$CALLS"`}, true, "install -y --no-install-recommends redis-server chromium"},
		{"one is installed", map[string]string{"chromium": "", "apt-get": `echo "$@" >>"$CALLS"`}, true, "install -y --no-install-recommends redis-server\n"},
		{"the installation fails", map[string]string{"apt-get": `echo "no such package" >&2; exit 100`}, false, "no such package"},
		{"there is no installer", map[string]string{"chromium": ""}, false, "missing: redis-server"},
	} {
		t.Run(strings.ReplaceAll(row.reason, " ", "-"), func(t *testing.T) {
			folder := t.TempDir()
			for _, name := range []string{"bash", "sh", "id", "mktemp", "rm", "cat"} {
				path, err := exec.LookPath(name)
				check(t, err)
				check(t, os.Symlink(path, filepath.Join(folder, name)))
			}
			check(t, os.WriteFile(filepath.Join(folder, "sudo"), []byte(program(`exec "$@"`)), 0o700))
			for name, text := range row.programs {
				check(t, os.WriteFile(filepath.Join(folder, name), []byte(program(text)), 0o700))
			}
			calls := filepath.Join(folder, "calls")
			run := exec.CommandContext(t.Context(), filepath.Join(folder, "bash"), script)
			run.Env = []string{"PATH=" + folder, "CALLS=" + calls}
			out, err := run.CombinedOutput()
			called, _ := os.ReadFile(calls)
			if text := string(out) + string(called); (err == nil) != row.passes || !strings.Contains(text, row.want) {
				t.Errorf("%v, %q, want %q", err, text, row.want)
			}
		})
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
				t.Errorf("%q stands at %d, before the step that it needs (%d)", step, at, last)
			}
			last = at
		}
		return
	}
	t.Error("there is no release.yaml")
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// piped runs a command line with standard input and an environment.
func piped(t *testing.T, in string, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, command.Terminal{In: strings.NewReader(in), Out: &out, Err: &errs, Env: func(name string) string { return env[name] }})
	return code, out.String(), errs.String()
}

func (h *env) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(h.path(name))
	ok(t, err)
	return string(text)
}

// everyFormat asks for all of them in files.
func (h *env) everyFormat() []string {
	var args []string
	for _, format := range output.Formats() {
		args = append(args, "-o", format+"="+h.path("out."+format))
	}
	return append(args, "--vsa-verifier-id", "https://ci.example/verifier")
}

// TestEveryFormat: all of them at once, of a run with denied, error and allowed.
func TestEveryFormat(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
	ok(t, h.SignBundle(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	manifest := h.file(t, "web.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: a, image: %q}\n  - {name: b, image: %q}\n  - {name: c, image: %q}\n",
		signed.Name, unsigned.Name, h.Registry.Host()+"/none:v1"))
	args := append([]string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "-f", manifest}, h.everyFormat()...)
	if code, out, errs := quaymaster(t, args...); code != command.ExitDenied || out != "" {
		t.Fatalf("exit status %d:\n%s%s", code, out, errs)
	}
	for format, wants := range map[string][]string{
		"text":         {"no signature found", "1 allowed, 1 denied, 1 could not be verified", manifest + ":7:22"},
		"json":         {`"kind": "VerdictList"`, `"line": 7`},
		"sarif":        {`"startLine": 7`, `"executionSuccessful": false`, `"ruleId": "unsigned"`},
		"junit":        {`failures="1" errors="1"`},
		"markdown":     {"❌ 1 denied", ":7:22`"},
		"github":       {"::error file=", ",line=7,col=22,"},
		"policyreport": {"wgpolicyk8s.io/v1alpha2", "result: fail"},
		"openreports":  {"openreports.io/v1alpha1", "result: fail"},
	} {
		text := h.read(t, "out."+format)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", format, want, text)
			}
		}
	}
}

// TestOutputsWithoutVerdict: a run that decides nothing leaves no file that looks clean,
// nor one of a former run.
func TestOutputsWithoutVerdict(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.file(t, "empty.yaml", "# nothing\n")
	closed, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		reason string
		ctx    context.Context
		args   []string
		code   int
	}{
		"nothing":     {"a file without objects", t.Context(), []string{"-f", h.path("empty.yaml")}, command.ExitUsage},
		"no file":     {"a file that is not there", t.Context(), []string{"-f", h.path("none.yaml")}, command.ExitUsage},
		"interrupted": {"the user gave up", closed, []string{h.Registry.Host() + "/app:v1"}, command.ExitError},
	} {
		for _, format := range output.Formats() {
			h.file(t, "out."+format, "all is well: of a former run\n")
		}
		args := append(append([]string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog"}, c.args...), h.everyFormat()...)
		var out, errs bytes.Buffer
		if code := run(c.ctx, args, command.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" }}); code != c.code {
			t.Errorf("%s: exit status %d, want %d: %s", name, code, c.code, errs.String())
		}
		for format, want := range map[string]string{
			"text": "nothing was decided", "json": `"error": "`, "sarif": `"executionSuccessful": false`, "junit": `errors="1"`,
			"markdown": "nothing was decided", "github": "::error ", "policyreport": "", "openreports": "",
		} {
			if text := h.read(t, "out."+format); !strings.Contains(text, want) || strings.Contains(text, "all is well") || want == "" && text != "" {
				t.Errorf("%s (%s) as %s:\n%s", name, c.reason, format, text)
			}
		}
	}
}

// TestOutputFlags: what cannot be is refused before any work.
func TestOutputFlags(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	image := h.Build("app", "v1", "1")
	key := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", image.Name}
	both := h.path("both")
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"an unknown format names those that are known", []string{"-o", "html"}, command.ExitUsage, "-o html: want text, json, yaml, sarif, junit, markdown, github, policyreport, openreports or vsa"},
		{"two in one file", []string{"-o", "json=" + both, "-o", "sarif=" + both}, command.ExitUsage, "over one another"},
		{"two on standard output", []string{"-o", "json", "-o", "sarif"}, command.ExitUsage, "mixed"},
		{"github twice", []string{"-o", "github", "-o", "github"}, command.ExitUsage, "mixed"},
		{"no path", []string{"-o", "json="}, command.ExitUsage, "the path is empty"},
		{"a folder that is not there", []string{"-o", "json=" + h.path("none/x")}, command.ExitUsage, "none/x"},
		{"annotations stand in a log with text", []string{"-o", "text", "-o", "github"}, command.ExitDenied, "::error title="},
	} {
		if code, out, errs := quaymaster(t, append(append([]string{}, key...), c.args...)...); code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit status %d:\n%s%s", c.reason, code, out, errs)
		}
	}
	const before = "written by the step\n"
	for name, env := range map[string]map[string]string{"appended": {output.StepSummary: h.path("summary")}, "written": nil} {
		h.file(t, "summary", before)
		if code, _, errs := piped(t, "", env, append(key, "-o", "markdown="+h.path("summary"))...); code != command.ExitDenied {
			t.Fatalf("exit status %d: %s", code, errs)
		}
		if text := h.read(t, "summary"); strings.HasPrefix(text, before) != (env != nil) || !strings.Contains(text, "1 denied") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// TestEachImageOnce: an image that is named at five places of two files and of a rendered chart
// costs as much as at one, and all places are reported.
func TestEachImageOnce(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	unsigned := h.Build("unsigned", "v1", "2")
	pod := func(name string, containers int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers:\n", name)
		for i := range containers {
			fmt.Fprintf(&b, "  - {name: c%d, image: %q}\n", i, unsigned.Name)
		}
		return b.String()
	}
	args := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "-o", "json=" + h.path("out.json"), "-o", "sarif=" + h.path("out.sarif"), "-o", "text"}
	requests := func(in string, args ...string) int {
		before := len(h.Registry.Requests())
		if code, out, errs := piped(t, in, nil, args...); code != command.ExitDenied {
			t.Fatalf("exit status %d:\n%s%s", code, out, errs)
		}
		return len(h.Registry.Requests()) - before
	}
	once := requests("", append(args, "-f", h.file(t, "one.yaml", pod("one", 1)))...)
	chart := "---\n# Source: web/templates/pod.yaml\n" + pod("three", 1) + "---\n# Source: web/templates/job.yaml\n" + pod("four", 1)
	often := requests(chart, append(args, "-f", h.path("one.yaml"), "-f", h.file(t, "two.yaml", pod("two", 2)), "-f", "-")...)
	if once == 0 || often != once {
		t.Errorf("%d requests for five places, %d for one", often, once)
	}
	var document struct {
		Runs []struct {
			Results []struct {
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
					LogicalLocations []struct{ Name string }
				}
			}
		}
	}
	ok(t, json.Unmarshal([]byte(h.read(t, "out.sarif")), &document))
	var places []string
	for _, result := range document.Runs[0].Results {
		at := result.Locations[0]
		place := fmt.Sprintf("%s:%d", at.PhysicalLocation.ArtifactLocation.URI, at.PhysicalLocation.Region.StartLine)
		if len(at.LogicalLocations) > 1 {
			place += " " + at.LogicalLocations[1].Name
		}
		places = append(places, strings.TrimPrefix(place, "file://"+h.folder+"/"))
	}
	want := "[one.yaml:6 two.yaml:6 two.yaml:7 standard%20input:8 web/templates/pod.yaml standard%20input:16 web/templates/job.yaml]"
	if got := fmt.Sprint(places); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sums() string {
	var all strings.Builder
	for i, platform := range platforms {
		fmt.Fprintf(&all, "%064x  quaymaster_v1.2.3_%s.tar.gz\n", i+10, platform)
	}
	return all.String() + strings.Repeat("f", 64) + "  quaymaster-node_v1.2.3_linux_amd64.tar.gz\n"
}

// workflow is the environment of a run.
func workflow() map[string]string {
	return map[string]string{
		"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "quaymaster/quaymaster", "GITHUB_REF": "refs/tags/v1.2.3",
		"GITHUB_WORKFLOW_REF": "quaymaster/quaymaster/.github/workflows/release.yaml@refs/tags/v1.2.3", "GITHUB_EVENT_NAME": "push",
		"GITHUB_REPOSITORY_ID": "1", "GITHUB_REPOSITORY_OWNER_ID": "2", "GITHUB_SHA": strings.Repeat("ab", 20),
		"GITHUB_RUN_ID": "3", "GITHUB_RUN_ATTEMPT": "1", "RUNNER_ENVIRONMENT": "github-hosted",
	}
}

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "SHA256SUMS")
	if err := os.WriteFile(file, []byte(sums()), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, golden := range map[string]string{"krew": "krew.yaml", "formula": "formula.rb", "provenance": "provenance.json"} {
		args := []string{command}
		if command != "provenance" {
			args = append(args, "--version", "v1.2.3", "--checksums", file)
		}
		var got bytes.Buffer
		if err := run(args, &got, func(name string) string { return workflow()[name] }); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", golden)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s differs from %s (-update writes it anew):\n%s", command, path, got.String())
		}
	}
}

func TestChecksumsRefused(t *testing.T) {
	for _, row := range []struct{ reason, version, sums, says string }{
		{"a branch", "main", sums(), "want a release"},
		{"a version that would end the quotes", `v1.2.3-"; system "true`, sums(), "want a release"},
		{"a line behind the version", "v1.2.3\nx: y", sums(), "want a release"},
		{"checksums of another release", "v1.2.4", sums(), "quaymaster_v1.2.4_darwin_amd64.tar.gz is not there"},
		{"no checksums", "v1.2.3", "", "is not there"},
		{"no checksum", "v1.2.3", strings.Replace(sums(), "000000", "00000g", 1), "two spaces"},
		{"a checksum twice", "v1.2.3", sums() + sums(), "twice"},
	} {
		if _, err := read(row.version, strings.NewReader(row.sums)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
	}
}

// TestProvenanceHasNoGaps leaves out each variable once.
func TestProvenanceHasNoGaps(t *testing.T) {
	for name := range workflow() {
		err := provenance(new(bytes.Buffer), func(asked string) string {
			if asked == name {
				return ""
			}
			return workflow()[asked]
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestCommandRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"tap"}, {"krew"}, {"krew", "--version", "v1.2.3", "--checksums", "nowhere"}, {"krew", "--sums", "x"}} {
		if err := run(args, new(bytes.Buffer), func(string) string { return "" }); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

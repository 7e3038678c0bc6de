package supplychain

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// piped are the ways in which a download is run without a check, or a
// version is taken that is not pinned.
func piped() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(curl|wget)\b[^\n|#]*\|\s*(sudo\s+)?(ba|z|da|k)?sh\b`),
		regexp.MustCompile(`\b(ba|z|da|k)?sh\b[^\n]*(<\(|\$\()\s*(curl|wget)\b`),
		regexp.MustCompile(`\bgo (install|run)\b[^\n]*@(latest|main|master|HEAD)\b`),
		regexp.MustCompile(`\b(npm|pnpm|yarn)\s+(i|install|ci|add)\b`),
		regexp.MustCompile(`\bpip3?\s+install\b`),
	}
}

// marks are in every text that does so; to look for them first is fast.
func marks() []string {
	return []string{"curl", "wget", "@latest", "@main", "@master", "@HEAD", "npm", "yarn", "pip"}
}

// runsUnseen returns what of a text does so.
func runsUnseen(text []byte) (found []string) {
	if !slices.ContainsFunc(marks(), func(mark string) bool { return bytes.Contains(text, []byte(mark)) }) {
		return nil
	}
	for _, way := range piped() {
		for _, match := range way.FindAll(text, -1) {
			found = append(found, string(match))
		}
	}
	return found
}

// tracked lists the files of the repository.
func tracked(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Skip("no checkout of git's")
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		files = append(files, name)
	}
	return files
}

// TestNoInstallScripts: no file here, and no command on a page, runs
// a download at once; and no package manager runs scripts of the product's.
func TestNoInstallScripts(t *testing.T) {
	files := tracked(t)
	if len(files) < 500 {
		t.Fatalf("%d files, which cannot be all", len(files))
	}
	looked := 0
	for _, name := range files {
		switch base := filepath.Base(name); base {
		case "package.json", "setup.py", "pyproject.toml", "Gemfile", "install.sh":
			t.Errorf("%s: an installation runs it", name)
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || bytes.IndexByte(text, 0) >= 0 || filepath.Base(name) == "install_test.go" {
			continue // gone, a folder, or no text
		}
		looked++
		for _, found := range runsUnseen(text) {
			t.Errorf("%s: %s", name, found)
		}
	}
	t.Logf("%d files", looked)
}

// TestRunsUnseen: each way is found, and a similar harmless command is not.
func TestRunsUnseen(t *testing.T) {
	for text, want := range map[string]bool{
		"curl -sSL https://get.example/install | sh":                   true,
		"wget -qO- https://get.example | sudo bash -s -- v1":           true,
		`sh -c "$(curl -fsSL https://get.example/install.sh)"`:         true,
		"bash <(curl -s https://get.example)":                          true,
		"go install example.com/tool@latest":                           true,
		"npm install -g tool":                                          true,
		"pip install tool":                                             true,
		"curl -s localhost:8000/metrics | grep ^quaymaster_":           false,
		"curl --output file -- https://get.example; sha256sum file":    false,
		"helm template app/ | curl --data-binary @- https://x.example": false,
		"go run ./docs/build":                                          false,
		"go install example.com/tool@v1.2.3":                           false,
	} {
		if got := len(runsUnseen([]byte(text))) > 0; got != want {
			t.Errorf("%s: found %t, want %t", text, got, want)
		}
	}
}

// TestSecurityPolicy: it has the private address for reports, the
// supported versions, the identity that signs a release, and the claims.
func TestSecurityPolicy(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{"report it privately", "not in an issue", "working days", "Supported is the newest release", "docs/threat-model.md", "docs/release.md", "test that replays the attack"} {
		if !strings.Contains(page, want) {
			t.Errorf("SECURITY.md does not say %q", want)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("../..", link[1])); err != nil && !strings.Contains(link[1], "://") {
			t.Errorf("SECURITY.md leads to %s, which is not there", link[1])
		}
	}
}

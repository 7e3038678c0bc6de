package main

import (
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestExamplesPage: each policy of docs/examples.md compiles, and one with a field that does not exist
// does not.
func TestExamplesPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/examples.md")
	ok(t, err)
	h := newEnv(t, registrytest.Options{})
	image := h.Build("unsigned", "v1", "1")
	examples := strings.Split(string(page), "```yaml\n")[1:]
	if len(examples) != 5 {
		t.Fatalf("%d examples", len(examples))
	}
	for i, example := range examples {
		text, _, _ := strings.Cut(example, "```")
		args, loaded := []string{"verify", image.Name, "--policy"}, command.ExitAllowed
		if strings.Contains(text, "kind: RegistryMirror") {
			args, loaded = []string{"verify", image.Name, "--key", h.path("key.pub"), "--insecure-ignore-tlog", "--mirrors"}, command.ExitDenied
		}
		for _, row := range []struct {
			text string
			code int
		}{{text, loaded}, {strings.Replace(text, "\nspec:\n", "\nspec:\n  noSuchField: true\n", 1), command.ExitUsage}} {
			file := h.file(t, "example"+string(rune('a'+i))+".yaml", row.text)
			if code, stdout, stderr := quaymaster(t, append(args, file)...); code != row.code {
				t.Errorf("example %d: status %d, want %d: %s%s\n%s", i+1, code, row.code, stdout, stderr, row.text)
			}
		}
	}
}

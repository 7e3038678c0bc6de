package ui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsExist: the pages name commands of the program that exist.
func TestCommandsExist(t *testing.T) {
	reference, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("static/assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`quaymaster ((?:log |bundle )?[a-z]+)`)
	found := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !isCommand(string(reference), match[1]) {
				t.Errorf("%s names quaymaster %s, which does not exist", script, match[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("%d commands were found", found)
	}
	if isCommand(string(reference), "policies") {
		t.Error("a command that does not exist is taken for one")
	}
}

func isCommand(reference, name string) bool {
	return strings.Contains(reference, "\n## quaymaster "+name+"\n")
}

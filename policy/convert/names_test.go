package convert

import (
	"regexp"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	dns := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	word := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	labels, words := map[string]bool{}, map[string]bool{}
	long := strings.Repeat("a.very.long/repository", 9)
	for text, want := range map[string]string{
		"docker.io/library/*": "docker-io-library-any", "*:*": "any-any", "": "policy", "///": "policy", "Ünïcode": "n-code", "9": "9",
		long + "1": "a-very-long-repositorya-very-long-repositorya-very-lo-" + "8", long + "2": "",
	} {
		got := label(text)
		if !dns.MatchString(got) || want != "" && !strings.HasPrefix(got, strings.TrimSuffix(want, "-8")) {
			t.Errorf("label of %q is %q, want %q", text, got, want)
		}
		for range 12 {
			one := unique(got, labels)
			if !dns.MatchString(one) {
				t.Errorf("%q is no DNS label", one)
			}
		}
		if name := attestorName(text, words); !word.MatchString(name) {
			t.Errorf("%q is no word of CEL", name)
		}
	}
	if label(long+"1") == label(long+"2") {
		t.Error("two long names share a label")
	}
	if len(labels) != 8*12 {
		t.Errorf("%d names, want %d: one was given twice", len(labels), 8*12)
	}
	for _, text := range append(reserved(), "in") {
		if name := attestorName(text, map[string]bool{}); name == text {
			t.Errorf("%q is a word that CEL keeps for itself", name)
		}
	}
}

// TestComments keeps what a source says inside its comment.
func TestComments(t *testing.T) {
	for _, text := range []string{"a\nkind: Pod", "a\r\nb", "a\u2028kind: Pod", "a\u0085kind: Pod", "a\x00b", strings.Repeat("word ", 100), strings.Repeat("w", 300), ""} {
		for _, line := range strings.Split(strings.TrimSuffix(comment(text), "\n"), "\n") {
			if !strings.HasPrefix(line, "#") || strings.ContainsAny(line, "\r\x00\u2028\u0085") {
				t.Errorf("%q becomes the line %q", text, line)
			}
		}
	}
}

// TestTests shows how tests are written; what they mean is tested where they are
// evaluated.
func TestTests(t *testing.T) {
	one, two := pattern("^a"), pattern("b$")
	for _, row := range []struct {
		test test
		cel  string
	}{
		{all{}, "true"}, {some{}, "false"}, {one, "name.matches(r'^a')"}, {not{one}, "!name.matches(r'^a')"},
		{all{one, two}, "name.matches(r'^a') && name.matches(r'b$')"}, {pattern("it's"), `name.matches("it's")`},
		{some{one, all{one, two}}, "name.matches(r'^a') || (name.matches(r'^a') && name.matches(r'b$'))"},
		{all{one, some{one, two}}, "name.matches(r'^a') && (name.matches(r'^a') || name.matches(r'b$'))"},
		{not{some{one, two}}, "!(name.matches(r'^a') || name.matches(r'b$'))"},
	} {
		if got := row.test.cel(); got != row.cel {
			t.Errorf("got %s, want %s", got, row.cel)
		}
	}
}

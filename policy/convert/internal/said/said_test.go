package said

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
		got := Label(text)
		if !dns.MatchString(got) || want != "" && !strings.HasPrefix(got, strings.TrimSuffix(want, "-8")) {
			t.Errorf("label of %q is %q, want %q", text, got, want)
		}
		for range 12 {
			one := Unique(got, labels)
			if !dns.MatchString(one) {
				t.Errorf("%q is no DNS label", one)
			}
		}
		if name := AttestorName(text, words); !word.MatchString(name) {
			t.Errorf("%q is no word of CEL", name)
		}
	}
	if Label(long+"1") == Label(long+"2") {
		t.Error("two long names share a label")
	}
	if len(labels) != 8*12 {
		t.Errorf("%d names, want %d: one was given twice", len(labels), 8*12)
	}
	for _, text := range append(reserved(), "in") {
		if name := AttestorName(text, map[string]bool{}); name == text {
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

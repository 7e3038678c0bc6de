package convert_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// TestUnreadable lists texts that are no policy at all.
func TestUnreadable(t *testing.T) {
	for _, row := range []struct{ reason, text, problem string }{
		{"nothing", "", "no document"}, {"comments", "# nothing\n---\n", "no document"}, {"a list", "- a", "want an object"}, {"no text", "\xff\xfe", "document 1"},
		{"unknown", "a: b", "unknown policy format"}, {"another kind", "apiVersion: v1\nkind: Pod", "unknown policy format"},
		{"a key twice", `{"default": [], "default": []}`, `stands twice`}, {"no YAML", "a: [", "document 1"},
		{"several formats", `{"default": []}` + "\n---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy", "several formats"}, {"two of one a file", "trustPolicies: []\n---\ntrustPolicies: []", "2 documents"},
		{"too many documents", strings.Repeat("a: b\n---\n", 101), "more than 100 documents"}, {"too much", strings.Repeat(" ", convert.MaxInput+1), "is larger than"},
		{"validators without a policy", "validators: []", "unknown policy format"}, {"a policy without validators", "policy: []", "unknown policy format"}, {"both of them", "validators: []\npolicy: []", "policy: 0 rules"},
		{"an application", "application: {}", "application.policy: 0 rules"}, {"transports alone", "transports: {}", "default: is missing"}, {"of several, which it is", "default: []\n---\na: b", "document 2: unknown policy format"},
		{"another type", `{"version": "1.0", "trustPolicies": [{"name": "a", "trustedIdentities": "*"}]}`, "trustPolicies.trustedIdentities: want a list, found string"},
	} {
		_, err := convert.Convert([]byte(row.text), converttest.Options())
		if err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: want %q, got %v", row.reason, row.problem, err)
		}
	}
}

// TestFormats takes each format by its name, whatever the text looks like, and no other
// name.
func TestFormats(t *testing.T) {
	for _, row := range []struct {
		from    convert.Format
		problem string
	}{
		{"", "trustPolicies: 0 trust policies"}, {convert.Notation, "trustPolicies: 0 trust policies"}, {convert.Containers, "trustPolicies: unknown field"},
		{"Notation", `no format is called "Notation": want one of connaisseur, notation,`}, {"x", `no format is called "x"`},
	} {
		out, err := convert.Convert([]byte(`{"version": "1.0", "trustPolicies": []}`), convert.Options{From: row.from})
		if err == nil || len(out) > 0 || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("from %q: want %q, got %d bytes and %v", row.from, row.problem, len(out), err)
		}
	}
}

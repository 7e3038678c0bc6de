package catalog_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// panicking is a compiler that panics for every document.
type panicking struct{ made }

func (panicking) Compile([]byte, string) (*policy.Policy, error) { panic("a nil map") }

func (panicking) Broken([]byte, string, error) *policy.Policy {
	return &policy.Policy{Kind: "Broken", Name: "a"}
}

// elsewhere is a dialect without documents.
type elsewhere struct{ made }

func (elsewhere) Recognises(string, string) bool { return false }

type panickingExceptions struct{ madeExceptions }

func (panickingExceptions) Compile([]byte, string) (*policy.Exception, error) { panic("a nil map") }

// TestPanics: a document that makes its compiler panic is broken, and the one after it is compiled.
func TestPanics(t *testing.T) {
	const text = "apiVersion: example.com/v1\nkind: Rule\nmetadata: {name: a, namespace: exempt}\n"
	for _, row := range []struct {
		reason  string
		options catalog.Options
		policy  bool
	}{
		{"a policy", catalog.Options{Dialects: []catalog.Dialect{panicking{}}}, true},
		{"an exception", catalog.Options{Dialects: []catalog.Dialect{elsewhere{}}, Exceptions: []catalog.Exceptions{panickingExceptions{}}, ExceptionNamespaces: []string{"exempt"}}, false},
	} {
		c, err := catalog.New(row.options)
		if err != nil {
			t.Fatal(err)
		}
		c.Put(document("a", text), document("b", "kind: Unknown\n"))
		entries := c.Snapshot().Entries
		if len(entries) != 2 || entries[0].State != catalog.Broken || !strings.Contains(entries[0].Why, "internal error, which is a defect: a nil map") ||
			(entries[0].Policy != nil) != row.policy || entries[1].State != catalog.NotOurs {
			t.Errorf("%s: %+v", row.reason, entries)
		}
	}
}

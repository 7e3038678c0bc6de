package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
)

// head holds the fields that are read before a document's dialect is known.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

func (c *Catalog) compile(d Document) Entry {
	entry := Entry{Key: d.Key, Source: d.Source}
	h, err := readHead(d.Text)
	if err != nil {
		return entry.broken(err)
	}
	if c.isRoot(h.APIVersion, h.Kind) {
		return compileRoot(entry, d, h)
	}
	if c.options.Overrides != nil && c.options.Overrides.Recognises(h.APIVersion, h.Kind) {
		return compileOverride(entry, c.options.Overrides, d)
	}
	if c.options.Selects != nil && !c.options.Selects(h.Metadata.Labels) {
		return entry.notOurs("the policy selector leaves it out")
	}
	for _, dialect := range c.options.Dialects {
		if dialect.Recognises(h.APIVersion, h.Kind) {
			return c.noted(compilePolicy(entry, dialect, d))
		}
	}
	for _, exceptions := range c.options.Exceptions {
		if exceptions.Recognises(h.APIVersion, h.Kind) {
			return c.compileException(entry, exceptions, d, h)
		}
	}
	entry.Unknown = h.Kind
	return entry.notOurs(fmt.Sprintf("%s %s is no kind of policy that is known here", h.APIVersion, h.Kind))
}

// readHead is lenient: the dialect checks the fields. Unreadable labels count as absent.
func readHead(text []byte) (head, error) {
	var h head
	if len(text) > maxDocument {
		return h, fmt.Errorf("the document of %d bytes exceeds the bound of %d", len(text), maxDocument)
	}
	data, err := asJSON(text)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); !odd {
			return h, err
		}
	}
	return h, nil
}

func compilePolicy(entry Entry, dialect Dialect, d Document) Entry {
	made, err := recovered(dialect.Compile, d)
	if err != nil {
		entry.Policy = dialect.Broken(d.Text, d.Source, err)
		if others, is := dialect.(interface{ OnlyBackground(document []byte) bool }); is && others.OnlyBackground(d.Text) {
			err = &BackgroundError{err}
		}
		return entry.broken(err)
	}
	if made.IsEmpty() {
		return entry.notOurs("it has only rules of kinds that are left to others")
	}
	entry.State, entry.Policy = Ours, made
	if absent := made.Unserved; len(absent) > 0 {
		said := make([]string, len(absent))
		for i, u := range absent {
			said[i] = u.Err.Error()
		}
		entry.Why = "it does not hold for all that it names, until that is there: " + strings.Join(said, "; ")
	}
	return entry
}

func (c *Catalog) compileException(entry Entry, exceptions Exceptions, d Document, h head) Entry {
	accepted, namespace := c.options.ExceptionNamespaces, cmp.Or(h.Metadata.Namespace, "default")
	if !slices.Contains(accepted, namespace) && !slices.Contains(accepted, "*") {
		return entry.notOurs("exceptions are not accepted from namespace " + namespace)
	}
	made, err := recovered(exceptions.Compile, d)
	if err != nil {
		return entry.broken(err)
	}
	entry.State, entry.Exception = Ours, made
	return entry
}

func compileOverride(entry Entry, overrides Overrides, d Document) Entry {
	made, err := recovered(overrides.Compile, d)
	if err != nil {
		entry.Override = overrides.Broken(d.Text, d.Source, err)
		return entry.broken(err)
	}
	entry.State, entry.Override = Ours, made
	return entry
}

func (c *Catalog) isRoot(apiVersion, kind string) bool {
	return c.options.TrustRoots != nil && trustroot.Recognises(apiVersion, kind)
}

func compileRoot(entry Entry, d Document, h head) Entry {
	entry.root = h.Metadata.Name
	made, err := recovered(trustroot.Parse, d)
	if err != nil {
		return entry.broken(err)
	}
	entry.State, entry.Root = Ours, made
	return entry
}

// recovered compiles a document. A panic of the compiler becomes an error: the document is broken,
// and neither ends the process nor is ignored.
func recovered[T any](compile func(document []byte, source string) (T, error), d Document) (made T, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", panicked)
		}
	}()
	return compile(d.Text, d.Source)
}

func (e Entry) broken(err error) Entry {
	e.State, e.Err, e.Why = Broken, err, err.Error()
	return e
}

func (e Entry) notOurs(why string) Entry {
	e.State, e.Why = NotOurs, why
	return e
}

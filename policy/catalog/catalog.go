package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/set"
)

// maxDocument bounds a document; the API server takes 3 MiB of JSON.
const maxDocument = 3 << 20

// Dialect compiles policies of one language.
type Dialect interface {
	// Recognises reports whether a document is one of the dialect's.
	Recognises(apiVersion, kind string) bool
	Compile(document []byte, source string) (*policy.Policy, error)
	// Broken returns the policy in place of a document that does not compile; nil for
	// text that is no document at all. A dialect with a method OnlyBackground(document
	// []byte) bool reports by it whether no rule of such a document is for admission.
	Broken(document []byte, source string, why error) *policy.Policy
}

// Exceptions compiles the exceptions of one language.
type Exceptions interface {
	Recognises(apiVersion, kind string) bool
	Compile(document []byte, source string) (*policy.Exception, error)
}

// Overrides reads the operators' overrides.
type Overrides interface {
	Recognises(apiVersion, kind string) bool
	Compile(document []byte, source string) (*policy.Override, error)
	// Broken returns an override in place of a document that does not compile; nil if no part
	// of it is to be enforced.
	Broken(document []byte, source string, why error) *policy.Override
}

// BackgroundError is the error of a broken document without a rule for admission: nothing
// is denied because of it, and another engine may run it.
type BackgroundError struct{ Err error }

// Error implements error.
func (e *BackgroundError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BackgroundError) Unwrap() error { return e.Err }

// State is the result for a document.
type State string

// The states.
const (
	Ours    State = "ours"     // active
	NotOurs State = "not-ours" // left alone
	Broken  State = "broken"   // ours, and cannot be evaluated
)

// Document is a policy or an exception as it is written.
type Document struct {
	// Key identifies it, such as by its source and its UID.
	Key string
	// Text is JSON or YAML; Source is its origin.
	Text   []byte
	Source string
}

// Entry is a document and its state.
type Entry struct {
	Key, Source string
	State       State
	// Why is the reason for a state other than Ours. For Ours it lists missing resources that
	// the document names, and its warnings; for a broken document it is Err's text.
	Why string
	Err error
	// Policy is set for a policy that is ours or broken, Override for an override that
	// is ours, or broken and holds in part; Exception for an exception and Root for a
	// TrustRoot that is ours.
	Policy    *policy.Policy
	Exception *policy.Exception
	Override  *policy.Override
	Root      *trustroot.TrustRoot

	// Unknown is the kind of a document that no dialect recognises; else empty.
	Unknown string

	root string // the name of a TrustRoot, broken ones included
}

// Snapshot is the set of active policies at one moment. It is immutable.
type Snapshot struct {
	// Set is never nil.
	Set *set.Set
	// Entries are sorted by key.
	Entries []Entry
}

// Options are the dependencies and settings of a Catalog.
type Options struct {
	// Dialects, at least one.
	Dialects   []Dialect
	Exceptions []Exceptions
	// ExceptionNamespaces are where exceptions are accepted from; none accepts
	// none, and "*" accepts every namespace.
	ExceptionNamespaces []string
	// Overrides may be nil: then an override is no document.
	Overrides Overrides
	// Selects reports by its labels whether a policy or an exception is for this gateway; nil
	// selects all. It does not apply to overrides, which match images and not policies, nor to
	// TrustRoots, which require nothing by themselves.
	Selects func(labels map[string]string) bool
	// Notes returns the effects of the settings on an active policy, a sentence each, like
	// Policy.Warnings; nil means none.
	Notes func(*policy.Policy) []string
	// TrustRoots receives the TrustRoots among the documents, before the policies that name
	// them become active; nil means that a TrustRoot is no document.
	TrustRoots *trustroot.Roots
	// Beside returns additional policies derived from the active ones, such as one about
	// images that none of them matches. They have no document and no entry. nil means none.
	Beside func(active []*policy.Policy) ([]*policy.Policy, error)
	// Effective returns the policy to activate in place of a policy: itself, one derived from
	// it, or an earlier one of the same ID. It is called while the catalog is being changed,
	// and must not call it except for Compile. nil means the policy itself.
	Effective func(key string, text []byte, p *policy.Policy) *policy.Policy
}

// Catalog keeps the documents. It is safe for concurrent use.
type Catalog struct {
	options  Options
	snapshot atomic.Pointer[Snapshot]

	mu      sync.Mutex
	entries map[string]compiled
	roots   map[string]bool // names passed to TrustRoots
}

// compiled is an entry with the text that it was made from.
type compiled struct {
	Entry
	text []byte
}

// New makes an empty Catalog.
func New(options Options) (*Catalog, error) {
	if len(options.Dialects) == 0 {
		return nil, errors.New("a catalog of policies wants at least one dialect")
	}
	empty, err := set.New()
	if err != nil {
		return nil, err
	}
	c := &Catalog{options: options, entries: map[string]compiled{}}
	c.snapshot.Store(&Snapshot{Set: empty})
	return c, nil
}

// Snapshot returns the active snapshot. It is never nil.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// Replace makes these the documents of a source with keys that begin with prefix: it
// removes missing ones and compiles changed ones, all at once.
func (c *Catalog) Replace(prefix string, documents []Document) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]bool{}
	for _, d := range documents {
		kept[d.Key] = true
		c.put(d)
	}
	maps.DeleteFunc(c.entries, func(key string, _ compiled) bool {
		return strings.HasPrefix(key, prefix) && !kept[key]
	})
	return c.publish()
}

// Put adds documents or replaces those with the same keys.
func (c *Catalog) Put(documents ...Document) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range documents {
		c.put(d)
	}
	return c.publish()
}

// Again compiles the documents of some kinds again, since a dependency of theirs has
// changed.
func (c *Catalog) Again(is func(apiVersion, kind string) bool) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, have := range c.entries {
		if h, err := readHead(have.text); err == nil && is(h.APIVersion, h.Kind) {
			have.Entry = c.compile(Document{Key: key, Text: have.text, Source: have.Source})
			c.entries[key] = have
		}
	}
	return c.publish()
}

// Remove takes documents away.
func (c *Catalog) Remove(keys ...string) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.entries, key)
	}
	return c.publish()
}

func (c *Catalog) put(d Document) {
	have, ok := c.entries[d.Key]
	if ok && have.Source == d.Source && bytes.Equal(have.text, d.Text) {
		return
	}
	c.entries[d.Key] = compiled{Entry: c.compile(d), text: bytes.Clone(d.Text)}
}

// Check returns why a document would be broken, or which resources that it names are
// missing and cannot be created later; nil for other documents of this gateway, and for
// foreign ones.
func (c *Catalog) Check(text []byte) error {
	entry := c.compile(Document{Text: text, Source: "the request"})
	if entry.State == Broken {
		return entry.Err
	}
	if entry.Policy == nil {
		return nil
	}
	var errs []error
	for _, u := range entry.Policy.Unserved {
		if !u.MayCome {
			errs = append(errs, fmt.Errorf("policy in %s: %s %s: %w", entry.Policy.Source, entry.Policy.Kind, entry.Policy.Name, u.Err))
		}
	}
	return errors.Join(errs...)
}

// noted adds the notes for the author of an active policy.
func (c *Catalog) noted(entry Entry) Entry {
	if warnings := c.warningsOf(entry); len(warnings) > 0 {
		entry.Why = strings.TrimPrefix(entry.Why+"; "+strings.Join(warnings, "; "), "; ")
	}
	return entry
}

func (c *Catalog) warningsOf(entry Entry) []string {
	if entry.State != Ours || entry.Policy == nil {
		return nil
	}
	if c.options.Notes == nil {
		return entry.Policy.Warnings
	}
	return slices.Concat(entry.Policy.Warnings, c.options.Notes(entry.Policy))
}

// Warnings returns the warnings for the author of a document of this gateway.
func (c *Catalog) Warnings(text []byte) []string {
	return c.warningsOf(c.compile(Document{Text: text, Source: "the request"}))
}

// Compile returns the entry that a document would have, without storing it.
func (c *Catalog) Compile(d Document) Entry { return c.compile(d) }

// Texts calls do with each policy of the catalog and the text that it was made of, in
// the order of keys. do must not call the catalog but for Compile.
func (c *Catalog) Texts(do func(entry Entry, text []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range c.snapshot.Load().Entries {
		if entry.Policy != nil {
			do(entry, c.entries[entry.Key].text)
		}
	}
}

// Publish rebuilds the snapshot after a change of Effective's result.
func (c *Catalog) Publish() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.publish()
}

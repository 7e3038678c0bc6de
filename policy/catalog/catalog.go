package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/sigstore/trustroot"
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
	// Broken stands for a document that does not compile; nil if nothing of it is to
	// hold.
	Broken(document []byte, source string, why error) *policy.Override
}

// BackgroundError is the error of a broken document without a rule for admission: nothing
// is denied because of it, and another engine may run it.
type BackgroundError struct{ Err error }

// Error implements error.
func (e *BackgroundError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BackgroundError) Unwrap() error { return e.Err }

// State is what became of a document.
type State string

// The states.
const (
	Ours    State = "ours"     // active
	NotOurs State = "not-ours" // left alone
	Broken  State = "broken"   // ours, and cannot be asked
)

// Document is a policy or an exception as it is written.
type Document struct {
	// Key tells it from others, such as its source and its UID.
	Key string
	// Text is JSON or YAML; Source says where it was read.
	Text   []byte
	Source string
}

// Entry is a document and what became of it.
type Entry struct {
	Key, Source string
	State       State
	// Why says it for a state other than Ours, and of one of ours which resources that it
	// names are not there, and its warnings; of a broken document it is Err's text.
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

// Snapshot is what is active at one moment. It is immutable.
type Snapshot struct {
	// Set is never nil.
	Set *policy.Set
	// Entries are sorted by key.
	Entries []Entry
}

// Options are what a Catalog needs.
type Options struct {
	// Dialects, at least one.
	Dialects   []Dialect
	Exceptions []Exceptions
	// ExceptionNamespaces are where exceptions are accepted from; none accepts
	// none.
	ExceptionNamespaces []string
	// Overrides may be nil: then an override is no document.
	Overrides Overrides
	// Selects says by its labels whether a policy or an exception is for this
	// gateway; nil selects all. It is not asked about an override, which is about
	// images and not policies, nor about a TrustRoot, which asks for nothing by
	// itself.
	Selects func(labels map[string]string) bool
	// Notes returns what the settings here make of an active policy, a sentence each, as
	// Policy.Warnings are; nil means nothing.
	Notes func(*policy.Policy) []string
	// TrustRoots is told what the TrustRoots among the documents trust, before the
	// policies that name them become active; nil means that a TrustRoot is no
	// document.
	TrustRoots *trustroot.Roots
	// Beside returns the policies that follow from those that are active, such as
	// one about what none of them names. They have no document and no entry. nil
	// means none.
	Beside func(active []*policy.Policy) ([]*policy.Policy, error)
	// InForce returns what is asked in place of a policy: itself, one that was made of
	// it, or one of the same ID from before. It is called while the catalog is being
	// changed, and must not call it but for Compile. nil means the policy itself.
	InForce func(key string, text []byte, p *policy.Policy) *policy.Policy
}

// Catalog keeps the documents. It is safe for concurrent use.
type Catalog struct {
	options  Options
	snapshot atomic.Pointer[Snapshot]

	mu      sync.Mutex
	entries map[string]compiled
	roots   map[string]bool // names that TrustRoots was told
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
	empty, err := policy.NewSet()
	if err != nil {
		return nil, err
	}
	c := &Catalog{options: options, entries: map[string]compiled{}}
	c.snapshot.Store(&Snapshot{Set: empty})
	return c, nil
}

// Snapshot returns what is active. It is never nil.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// Replace makes these the documents of a source, whose keys begin with prefix:
// what is no longer there goes, what changed is compiled, all at once.
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

// Again compiles the documents of some kinds again, since what they were compiled
// with has changed.
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

// Check says why a document would be broken, or which resources that it names are not
// there and cannot come; nil for what is ours else, and for what is not ours.
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

// noted adds what the author of an active policy should know.
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

// Warnings returns what the author of a document that is ours is warned of.
func (c *Catalog) Warnings(text []byte) []string {
	return c.warningsOf(c.compile(Document{Text: text, Source: "the request"}))
}

// Compile says what would become of a document, which is not kept.
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

// Publish makes the snapshot again: what InForce says has changed.
func (c *Catalog) Publish() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.publish()
}

// head is what is read of a document before it is known whose it is.
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

// readHead is lenient: what the fields mean is the dialect's to say. A field of
// labels that cannot be read selects as if it were not there.
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
	made, err := dialect.Compile(d.Text, d.Source)
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
	if !slices.Contains(c.options.ExceptionNamespaces, cmp.Or(h.Metadata.Namespace, "default")) {
		return entry.notOurs("exceptions are not accepted from namespace " + cmp.Or(h.Metadata.Namespace, "default"))
	}
	made, err := exceptions.Compile(d.Text, d.Source)
	if err != nil {
		return entry.broken(err)
	}
	entry.State, entry.Exception = Ours, made
	return entry
}

func compileOverride(entry Entry, overrides Overrides, d Document) Entry {
	made, err := overrides.Compile(d.Text, d.Source)
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
	made, err := readRoot(d)
	if err != nil {
		return entry.broken(err)
	}
	entry.State, entry.Root = Ours, made
	return entry
}

// readRoot makes an error of a panic: a document that the reader trips over is
// broken, and ends nothing.
func readRoot(d Document) (made *trustroot.TrustRoot, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", panicked)
		}
	}()
	return trustroot.Parse(d.Text, d.Source)
}

func (e Entry) broken(err error) Entry {
	e.State, e.Err, e.Why = Broken, err, err.Error()
	return e
}

func (e Entry) notOurs(why string) Entry {
	e.State, e.Why = NotOurs, why
	return e
}

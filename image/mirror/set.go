package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror/internal/mapping"
)

// When is the condition for using a target.
type When string

// The conditions.
const (
	// Verified: it serves the verified digest. The default.
	Verified When = "Verified"
	// Present: it serves the resolved digest, where no policy requires verification.
	Present When = "Present"
	// Always: no request is sent to the target; the reference is pinned, so that the runtime
	// refuses other bytes.
	Always When = "Always"
)

// Otherwise is the action for an image without a usable target.
type Otherwise string

// The actions.
const (
	// UseSource leaves the image at the source. The default.
	UseSource Otherwise = "Source"
	Deny      Otherwise = "Deny"
)

// Side is one side of a mapping.
type Side string

// The sides.
const (
	Source Side = "Source"
	Target Side = "Target"
)

// Pulls selects the redirected references.
type Pulls string

// The choices: by tag or digest (the default), by digest alone
// (ImageDigestMirrorSet), by tag alone (ImageTagMirrorSet).
const (
	AnyPull   Pulls = ""
	ByDigest  Pulls = "Digest"
	ByTagOnly Pulls = "Tag"
)

// Candidate is one target's name for an image.
type Candidate struct {
	// Ref is the image at the target, with the source's tag and digest.
	Ref image.Ref
	// Fill: the target fills itself by requests for a tag and not by requests for a digest (ECR's
	// pull-through cache), so the tag is fetched first.
	Fill bool
}

// Route is the mirror configuration for one reference.
type Route struct {
	// Mirror names the document and the entry, as in RegistryMirror/hub[0]. Equal
	// names mean equal settings, for as long as the Set is the same.
	Mirror string
	// Candidates are the targets in order; at least one.
	Candidates []Candidate
	When       When
	Otherwise  Otherwise
	// Resolve is the side that resolves a tag.
	Resolve Side
	// Evidence are the repositories with signatures and attestations, in order; at least one,
	// without duplicates.
	Evidence []image.Repository
	// PullSecrets are the Secrets to add to a pod that is redirected.
	PullSecrets []string
}

// Origin is the source's name of an image that is named by its copy.
type Origin struct {
	// Ref is the source's name, with the copy's tag and digest.
	Ref    image.Ref
	Mirror string
	// Evidence are the repositories with signatures and attestations, in order: the entry's own,
	// with the copy as the only target.
	Evidence []image.Repository
	// PullSecrets are the entry's.
	PullSecrets []string
}

// Subject is the input of an entry's selectors.
type Subject struct {
	Namespace string
	// NamespaceLabels are valid only with NamespaceKnown. Without it, an entry that selects by
	// them cannot be evaluated.
	NamespaceLabels map[string]string
	NamespaceKnown  bool
	// Labels are the object's own.
	Labels map[string]string
	// Owners are the object's controllers.
	Owners []Owner
	// Bare: labels and owners are not available.
	Bare bool
}

// Owner is the kind of an owner.
type Owner struct{ Group, Kind string }

// Set is the mirror configuration at one moment. It is immutable; a nil Set redirects nothing.
type Set struct {
	documents []*Document
	hash      string
	sources   mapping.Index[*way]
	targets   mapping.Index[reverse]
}

// Document is one compiled mapping document.
type Document struct {
	// Kind and Name of the document, as in RegistryMirror and hub; a ConfigMap's
	// name has its namespace before it.
	Kind, Name string
	// Source is the location of the document, for messages.
	Source string
	// Hash is the SHA-256 of kind, name and specification, in hexadecimal. The status is not part
	// of it.
	Hash string

	entries []*entry
}

// Finding is a warning about a valid mapping.
type Finding struct {
	// Where is the document and the path in it.
	Where   string
	Message string
	// Hint is the recommended fix.
	Hint string
}

// entry is one rule of a document.
type entry struct {
	document *Document
	// name is Route.Mirror; path is the location in the document.
	name, path  string
	ways        []*way
	when        When
	otherwise   Otherwise
	resolve     Side
	pulls       Pulls
	pullSecrets []string
	selects     selector
}

// way is one source of an entry with its targets.
type way struct {
	entry  *entry
	source mapping.Source
	path   string // of the source in the document
	// targets in order, without those that are the source itself, which is used anyway.
	targets  []target
	identity []string // the paths of the omitted ones
	evidence []evidence
	// aliases are targets with other forms of {host}, to recognise copies.
	aliases []*mapping.Mapping
}

type target struct {
	*mapping.Mapping
	fill bool
	path string
}

// evidence is a side, or else a repository.
type evidence struct {
	side Side
	at   *mapping.Mapping
}

// reverse is the way from a target back to its source.
type reverse struct {
	*mapping.Mapping
	way *way
}

// NewSet joins documents. Two of the same kind and name are an error, as is more than MaxEntries.
func NewSet(documents ...*Document) (*Set, error) {
	s := &Set{documents: slices.Clone(documents)}
	slices.SortFunc(s.documents, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	sum, entries := sha256.New(), 0
	for i, d := range s.documents {
		if i > 0 && d.Kind == s.documents[i-1].Kind && d.Name == s.documents[i-1].Name {
			return nil, fmt.Errorf("mirrors: %s %s is there twice: in %s and in %s", d.Kind, d.Name, s.documents[i-1].Source, d.Source)
		}
		fmt.Fprintf(sum, "%s\x00%s\x00%s\x00", d.Kind, d.Name, d.Hash)
		entries += len(d.entries)
		if entries > MaxEntries {
			return nil, fmt.Errorf("mirrors: more than %d entries", MaxEntries)
		}
		for _, e := range d.entries {
			for _, w := range e.ways {
				s.file(w)
			}
		}
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

func (s *Set) file(w *way) {
	s.sources.AddSource(w.source, w)
	for _, t := range w.targets {
		s.targets.AddTarget(t.Mapping, reverse{t.Mapping, w})
	}
	for _, m := range w.aliases {
		s.targets.AddTarget(m, reverse{m, w})
	}
}

// IsEmpty reports whether the set has no document.
func (s *Set) IsEmpty() bool { return s == nil || len(s.documents) == 0 }

// Documents returns the documents, sorted by kind and name.
func (s *Set) Documents() []*Document {
	if s == nil {
		return nil
	}
	return slices.Clone(s.documents)
}

// Hash identifies the content of the set; equal sets have equal hashes.
func (s *Set) Hash() string {
	if s == nil {
		return ""
	}
	return s.hash
}

// Denies reports whether an entry denies images without a usable target.
func (s *Set) Denies() bool {
	for e := range s.entries() {
		if e.otherwise == Deny {
			return true
		}
	}
	return false
}

// Registries returns the hosts of the targets that do not depend on an image, sorted.
func (s *Set) Registries() []string {
	var hosts []string
	for e := range s.entries() {
		for _, w := range e.ways {
			for _, t := range w.targets {
				if host, ok := t.Host(); ok {
					hosts = append(hosts, host)
				}
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// entries yields the entries in order.
func (s *Set) entries() func(yield func(*entry) bool) {
	return func(yield func(*entry) bool) {
		if s == nil {
			return
		}
		for _, d := range s.documents {
			for _, e := range d.entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

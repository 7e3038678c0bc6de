package match

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// The object fields that a filter reads: its name, labels and annotations.

var (
	errObjectUnknown = errors.New("the rule selects by the object's metadata, and the object is not known")
	errMetadata      = errors.New("the rule selects by the object's metadata, and metadata is not an object")
)

// subresourceError is why the metadata of an object is not known in a request for its
// subresource.
type subresourceError struct{ kind, subresource string }

func (e *subresourceError) Error() string {
	return fmt.Sprintf("the rule selects by the metadata of the %s, and a request for its subresource %s brings another object, which the requester writes",
		e.kind, e.subresource)
}

// metadataOf returns the metadata of the object, or of the deleted one. It decodes the object, so
// only filters that need the metadata call it. An error means that the metadata is unknown: the
// body for most subresources (an Eviction, a Scale, options) is not the object that the rule
// names, and the requester chooses its labels.
func metadataOf(s *policy.Subject) (map[string]any, error) {
	content := s.Object
	if content.IsZero() {
		content = s.OldObject
	}
	if content.IsZero() {
		return nil, errObjectUnknown
	}
	object := content.Map()
	if s.Subresource != "" && !isWhole(s, object) {
		return nil, &subresourceError{s.Kind, s.Subresource}
	}
	switch meta := object["metadata"].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return meta, nil
	}
	return nil, errMetadata
}

// isWhole reports whether the body for a subresource is the object that it belongs to.
func isWhole(s *policy.Subject, object map[string]any) bool {
	switch s.Subresource {
	case "status", ephemeralContainers, "resize", "finalize", "approval":
		kind, isText := object["kind"].(string)
		return !isText || kind == s.Kind
	}
	return false
}

// matchesMetadata evaluates labels and annotations.
func (f *filter) matchesMetadata(s *policy.Subject, _ Polarity) logic.Value {
	d := &f.Resources
	if len(d.Annotations) == 0 && (d.Selector == nil || !d.Selector.selects()) {
		return logic.Is(true)
	}
	meta, err := metadataOf(s)
	if err != nil {
		return logic.Indeterminate(err)
	}
	result := containsAll(entriesOf(meta["annotations"], "annotation"), d.Annotations)
	if result.False() || d.Selector == nil {
		return result
	}
	selected := d.Selector.matches(entriesOf(meta["labels"], "label"))
	if selected.False() || result.True() {
		return selected
	}
	return result
}

func (f *filter) matchesName(s *policy.Subject, polarity Polarity) logic.Value {
	if len(f.names) == 0 {
		return logic.Is(true)
	}
	return named(s, f.names, polarity)
}

// named reports whether a pattern matches the subject's name. A name that is yet to be
// generated is matched if every name that can come of it is, and is indeterminate if one
// is. Kyverno compares generateName itself, which here selects and never excludes: the
// object gets another name.
func named(s *policy.Subject, patterns []string, polarity Polarity) logic.Value {
	name := s.Name
	if name == "" {
		if wildcard.Any(patterns, "") {
			return logic.Is(true) // as every name
		}
		meta, err := metadataOf(s)
		if err != nil {
			return logic.Indeterminate(err)
		}
		name, _ = meta["name"].(string)
		if name == "" {
			return generated(meta["generateName"], patterns, polarity)
		}
	}
	return logic.Is(wildcard.Any(patterns, name))
}

// generatedSuffix is in place of the characters that are added: it is in no pattern, so that wildcards
// alone match it.
const generatedSuffix = "\x00\x00\x00\x00\x00"

func generated(generateName any, patterns []string, polarity Polarity) logic.Value {
	base, _ := generateName.(string)
	if base == "" {
		return logic.Is(false)
	}
	if polarity == Selecting && wildcard.Any(patterns, base) {
		return logic.Is(true)
	}
	base = base[:min(len(base), builtin.MaxGeneratedBase)]
	if wildcard.Any(patterns, base+generatedSuffix) {
		return logic.Is(true)
	}
	for _, pattern := range patterns {
		if mayMatch(pattern, base, builtin.GeneratedLength) {
			return logic.Indeterminate(fmt.Errorf("the rule selects by the name %s, and the object's name is yet to be generated from %s", pattern, base))
		}
	}
	return logic.Is(false)
}

// mayMatch reports whether a pattern matches a base and some generated characters. The
// positions of the base at which a prefix of the pattern can end are kept in one word,
// since names are at most 63 characters.
func mayMatch(pattern, base string, more int) bool {
	length := len(base) + more
	reached := uint64(1)
	all := uint64(1)<<(length+1) - 1
	for i := range len(pattern) {
		next := uint64(0)
		for at := range length + 1 {
			if reached&(1<<at) == 0 {
				continue
			}
			switch c := pattern[i]; {
			case c == '*':
				next |= all &^ (1<<at - 1)
			case at == length:
			case c == '?', at < len(base) && base[at] == c, at >= len(base) && strings.IndexByte(builtin.GeneratedAlphabet, c) >= 0:
				next |= 1 << (at + 1)
			}
		}
		reached = next
	}
	return reached&(1<<length) != 0
}

package match

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// kindSelector is Kyverno's [[group/]version/]Kind[/subresource], with
// wildcards in every part. What is not written matches anything, save the
// subresource.
type kindSelector struct{ group, version, kind, subresource string }

func parseKind(text, path string) (kindSelector, error) {
	s := kindSelector{group: "*", version: "*"}
	parts := strings.Split(text, "/")
	for _, part := range parts {
		if part == "" {
			return s, field.Fail(path, "%q: want [group/][version/]Kind[/subresource]", text)
		}
	}
	switch {
	case len(parts) == 1:
		s.kind = parts[0]
	case len(parts) == 2 && isVersion(parts[0]):
		s.version, s.kind = parts[0], parts[1]
	case len(parts) == 2:
		s.kind, s.subresource = parts[0], parts[1]
	case len(parts) == 3 && isVersion(parts[1]):
		s.group, s.version, s.kind = parts[0], parts[1], parts[2]
	case len(parts) == 3 && isVersion(parts[0]):
		s.version, s.kind, s.subresource = parts[0], parts[1], parts[2]
	case len(parts) == 4:
		s.group, s.version, s.kind, s.subresource = parts[0], parts[1], parts[2], parts[3]
	default:
		return s, field.Fail(path, "%q: want [group/][version/]Kind[/subresource]", text)
	}
	if kind, sub, dotted := strings.Cut(s.kind, "."); dotted && s.subresource == "" {
		s.kind, s.subresource = kind, sub // the old form, Pod.status
	}
	if right := rightKind(s.kind); right != "" {
		return s, field.Fail(path, "%q is no kind, and would match nothing: write %s", s.kind, right)
	}
	if s.kind == "" || s.kind[0] >= 'a' || strings.Contains(s.kind, ".") {
		return s, field.Fail(path, "%q is no kind, and would match nothing: kinds are written as in manifests, such as Pod", s.kind)
	}
	if strings.Trim(text, "*/") == "" { // * and */*, as Kyverno reads them
		s.subresource = "*"
	}
	return s, nil
}

// rightKind returns the spelling of a known kind that is written in another case
// or as the plural; empty for all other kinds, which may be anybody's.
func rightKind(kind string) string {
	for _, known := range append(PodControllers(), "Pod", "PodTemplate", "Namespace") {
		if kind != known && (strings.EqualFold(kind, known) || strings.EqualFold(kind, known+"s")) {
			return known
		}
	}
	return ""
}

// isVersion tells v1, v1beta1 and * from a group and a kind.
func isVersion(s string) bool {
	if s == "*" {
		return true
	}
	rest, ok := strings.CutPrefix(s, "v")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' && strings.ToLower(rest) == rest
}

// matches treats the ephemeralcontainers subresource as the pod it changes, as
// Kyverno does: a rule about pods must see containers that are added later.
func (s kindSelector) matches(subject *policy.Subject) bool {
	sub := subject.Subresource
	if sub == "ephemeralcontainers" && s.subresource == "" {
		sub = ""
	}
	return wildcard.Match(s.group, subject.Group) && wildcard.Match(s.version, subject.Version) &&
		wildcard.Match(s.kind, subject.Kind) && wildcard.Match(s.subresource, sub) || s.matchesSent(subject)
}

// isPod reports whether the selector means pods and nothing else.
func (s kindSelector) isPod() bool {
	return s.kind == "Pod" && s.subresource == "" && s.group == "*" && (s.version == "*" || s.version == "v1")
}

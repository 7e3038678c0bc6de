package match

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// kindSelector is Kyverno's [[group/]version/]Kind[/subresource], with
// wildcards in every part. An omitted part matches anything, except the
// subresource.
type kindSelector struct{ group, version, kind, subresource string }

const (
	ephemeralContainers = builtin.Ephemeral
	podKind             = "Pod"
	wantKind            = "%q: want [group/][version/]Kind[/subresource]"
)

// parseKind reads the forms of Kyverno's ParseKindSelector. A subresource alone, as in
// scale, and behind wildcards, as in */*/scale, is that of every kind.
func parseKind(text, path string) (kindSelector, error) {
	parts := strings.Split(text, "/")
	if slices.Contains(parts, "") || len(parts) > 4 {
		return kindSelector{}, field.Fail(path, wantKind, text)
	}
	if strings.Trim(strings.ReplaceAll(text, ".", "/"), "*/") == "" && strings.ContainsAny(text, "/.") {
		return kindSelector{"*", "*", "*", "*"}, nil
	}
	if s, ok := ofEveryKind(text); ok {
		return s, s.check(path)
	}
	s, ok := splitKind(parts)
	if !ok {
		return s, field.Fail(path, wantKind, text)
	}
	if version := parts[0]; version != "*" && version == s.version && wildcard.Contains(version) {
		return s, field.Fail(path, "%q is no version in Kyverno, which takes it for a kind or a group that matches nothing: write v1/%s, or GROUP/%s/%s", version, s.kind, version, s.kind)
	}
	if kind, sub, dotted := strings.Cut(s.kind, "."); dotted && s.subresource == "" {
		s.kind, s.subresource = kind, sub // the old form, Pod.status
	}
	return s, s.check(path)
}

// ofEveryKind reads a subresource without a kind: scale, */scale, *.scale and */*/scale. A
// word in lower case is one behind a wildcard, as in Kyverno; alone it is one if
// Kubernetes has a subresource of that name, for a custom kind may be in lower case.
func ofEveryKind(text string) (kindSelector, bool) {
	parts := strings.Split(strings.ReplaceAll(text, "*.", "*/"), "/")
	sub := parts[len(parts)-1]
	s := kindSelector{"*", "*", "*", sub}
	if sub != strings.ToLower(sub) || strings.Trim(sub, "*") == "" || strings.Contains(sub, ".") || len(parts) > 4 {
		return s, false
	}
	if len(parts) == 1 {
		return s, builtin.IsSubresource(sub)
	}
	return s, !slices.ContainsFunc(parts[:len(parts)-1], func(part string) bool { return part != "*" })
}

// splitKind assigns the parts by their number and by the place of a version.
func splitKind(parts []string) (s kindSelector, ok bool) {
	s = kindSelector{group: "*", version: "*"}
	switch {
	case len(parts) == 1:
		s.kind = parts[0]
	case len(parts) == 2 && isVersion(parts[0]):
		s.version, s.kind = parts[0], parts[1]
	case len(parts) == 2:
		s.kind, s.subresource = parts[0], parts[1]
	case len(parts) == 3 && isVersion(parts[0]) && (parts[0] != "*" || !isVersion(parts[1])):
		s.version, s.kind, s.subresource = parts[0], parts[1], parts[2]
	case len(parts) == 3 && isVersion(parts[1]):
		s.group, s.version, s.kind = parts[0], parts[1], parts[2]
	case len(parts) == 4 && isVersion(parts[1]):
		s.group, s.version, s.kind, s.subresource = parts[0], parts[1], parts[2], parts[3]
	default:
		return s, false
	}
	return s, true
}

// isVersion distinguishes v1, v1beta1, * and v1* from a group and a kind.
func isVersion(s string) bool {
	if s == "*" {
		return true
	}
	rest, ok := strings.CutPrefix(s, "v")
	return ok && rest != "" && (rest[0] >= '0' && rest[0] <= '9' || rest[0] == '*' || rest[0] == '?') &&
		strings.ToLower(rest) == rest && !strings.Contains(rest, ".")
}

// ofAnother returns the kind to write for one that Kyverno's ParseKindSelector reads as another, of which there are no objects: a
// version behind a wildcard, a subresource alone, and a version without a group and with a number of two digits.
func ofAnother(text string) string {
	parts := strings.Split(text, "/")
	switch _, every := ofEveryKind(text); {
	case len(parts) == 1 && every:
		return "*/" + text
	case len(parts) == 3 && parts[0] == "*" && isVersion(parts[1]) && !every && strings.Trim(text, "*/") != "" && !strings.Contains(parts[2], "."):
		return text[len("*/"):]
	case (len(parts) == 2 || len(parts) == 3) && parts[0] != "*" && isVersion(parts[0]) && !wildcard.Any([]string{"v?", "v?alpha?", "v?beta?"}, parts[0]):
		return "GROUP/" + text
	}
	return ""
}

// foreign refuses, in a block that exempts, kinds that exempt nothing in Kyverno. In a match they select more than there.
func (b Block) foreign() error {
	var errs []error
	for _, f := range b.filters {
		errs = append(errs, f.foreign...)
	}
	return errors.Join(errs...)
}

// check refuses a selector that can match nothing by its text.
func (s kindSelector) check(path string) error {
	if right := s.rightKind(); right != "" {
		return field.Fail(path, "%q is no kind, and would match nothing: write %s", s.kind, right)
	}
	switch {
	case s.kind == "" || strings.ContainsAny(s.kind, ". {}"):
		return field.Fail(path, "%q is no kind, and would match nothing: kinds are written as in manifests, such as Pod", s.kind)
	case s.group != strings.ToLower(s.group):
		return field.Fail(path, "%q is no API group, and would match nothing: groups are in lower case", s.group)
	case s.subresource != strings.ToLower(s.subresource) || strings.ContainsAny(s.subresource, ". {}"):
		return field.Fail(path, "%q is no subresource, and would match nothing: subresources are in lower case, such as scale", s.subresource)
	}
	return errors.Join(s.checkGroup(path), s.checkBody(path), s.checkVersion(path), s.checkSubresource(path))
}

// matches reports whether the selector selects the object of a request, or its
// subresource. Unless exact, it treats the ephemeralcontainers subresource as the pod that
// it changes, as Kyverno does: a rule about pods applies to containers that are added
// later.
func (s *kindSelector) matches(subject *policy.Subject, exact bool) logic.Value {
	if wildcard.Match(s.kind, subject.Kind) && wildcard.Match(s.group, subject.Group) && wildcard.Match(s.version, subject.Version) {
		if wildcard.Match(s.subresource, subject.Subresource) {
			return logic.Is(true)
		}
		if !exact && s.subresource == "" && subject.Subresource == ephemeralContainers && subject.Kind == podKind && subject.Group == "" {
			return logic.Is(true)
		}
	}
	switch {
	case subject.Subresource == "" || s.subresource == "" || !wildcard.Match(s.subresource, subject.Subresource):
		return logic.Is(false)
	case s.matchesSent(subject):
		return logic.Is(true)
	case subject.IsBody() && !isSent(subject):
		return s.matchesParent(subject)
	}
	return logic.Is(false)
}

// matchesUnconverted is for an object that the selector does not match, which it may be
// because of the version alone: the API server converts an object to the version that the
// webhook rules name, and Kyverno evaluates the rule on that. An exclusion by version covers
// an object in that version alone, as in Kyverno.
func (s *kindSelector) matchesUnconverted(subject *policy.Subject, exact bool) logic.Value {
	if s.version == "*" || wildcard.Match(s.version, subject.Version) {
		return logic.Is(false)
	}
	whole := *s
	whole.version = "*"
	if whole.matches(subject, exact).False() {
		return logic.Is(false)
	}
	if err := subject.Unconverted([]string{s.version}); err != nil {
		return logic.Indeterminate(err)
	}
	return logic.Is(false)
}

// isPod reports whether the selector selects pods and nothing else.
func (s kindSelector) isPod() bool {
	return s.kind == podKind && s.subresource == "" && s.group == "*" && (s.version == "*" || s.version == "v1")
}

// NamesSubresource reports whether a filter names a subresource of pods, with a wildcard or without.
func (b Block) NamesSubresource(name string) bool {
	return slices.ContainsFunc(b.filters, func(f filter) bool {
		return slices.ContainsFunc(f.kinds, func(s kindSelector) bool {
			return s.subresource != "" && wildcard.Match(s.subresource, name) && wildcard.Match(s.kind, podKind)
		})
	})
}

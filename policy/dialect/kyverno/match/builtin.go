package match

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// builtins returns the kinds of Kubernetes that the selector names, not by a pattern; none if it
// may select a kind of another API.
func (s kindSelector) builtins() []builtin.Resource {
	return s.builtinsBy(func(r builtin.Resource) bool { return r.Kind == s.kind })
}

func (s kindSelector) builtinsBy(named func(builtin.Resource) bool) []builtin.Resource {
	if s.group == "*" && builtin.IsNamedAlike(s.kind) {
		return nil
	}
	return slices.DeleteFunc(builtin.Resources(), func(r builtin.Resource) bool { return !named(r) || !wildcard.Match(s.group, r.Group) })
}

// rightKind returns the spelling of a kind of Kubernetes that is written in another case
// or as the plural; empty for all other kinds, which may be custom ones.
func (s kindSelector) rightKind() string {
	if s.group == "core" && len(kindSelector{kind: s.kind}.builtins()) > 0 {
		return "v1/" + s.kind
	}
	misspelt := s.builtinsBy(func(r builtin.Resource) bool {
		return strings.EqualFold(s.kind, r.Kind) || strings.EqualFold(s.kind, r.Name)
	})
	if len(misspelt) == 0 || misspelt[0].Kind == s.kind {
		return ""
	}
	return misspelt[0].Kind
}

// CheckKind refuses a kind of an object, without wildcards, that Kubernetes spells otherwise or has
// in another group. The group is empty for the core group.
func CheckKind(group, kind, path string) error {
	s := kindSelector{group: group, version: "*", kind: kind}
	if group == "" && len(s.builtins()) == 0 && s.rightKind() == "" {
		return field.Fail(path, "the core group (v1) has no %s: write apiVersion as GROUP/VERSION", kind)
	}
	return s.check(path)
}

// checkGroup refuses a kind of Kubernetes in a group of Kubernetes that does not have it.
func (s kindSelector) checkGroup(path string) error {
	isGroup := func(r builtin.Resource) bool { return r.Group == s.group }
	if !slices.ContainsFunc(builtin.Resources(), isGroup) || len(s.builtins()) > 0 {
		return nil
	}
	of := (kindSelector{group: "*", kind: s.kind}).builtins()
	if len(of) == 0 {
		return nil
	}
	right := "v1/" + s.kind
	if of[0].Group != "" {
		right = of[0].Group + "/*/" + s.kind
	}
	return field.Fail(path, "the group %s has no %s, and so the kind would match nothing: write %s", s.group, s.kind, right)
}

// checkVersion refuses a version that a kind of Kubernetes never had.
func (s kindSelector) checkVersion(path string) error {
	if of := s.builtins(); len(of) > 0 && !slices.ContainsFunc(of, func(r builtin.Resource) bool { return r.MayHaveVersion(s.version) }) {
		return field.Fail(path, "Kubernetes has no version %s of %s, and so the kind would match nothing: leave the version out", s.version, s.kind)
	}
	return nil
}

// checkBody refuses the kind of the body of requests for subresources: a rule names the object and
// the subresource. A kind of that name in another group may be a custom one.
func (s kindSelector) checkBody(path string) error {
	for _, one := range append(builtin.AllSent(), builtin.Sent{Subresource: "scale", Group: "autoscaling", Kind: "Scale", Of: "*"}) {
		if one.Kind == s.kind && wildcard.Match(s.group, one.Group) && len(s.builtins()) == 0 {
			custom := ""
			if s.group == "*" {
				custom = "; for a custom kind of that name write its group, as in GROUP/VERSION/" + s.kind
			}
			return field.Fail(path, "%s is the body of requests for a subresource, and so the kind would match nothing: write %s/%s%s",
				s.kind, one.Of, one.Subresource, custom)
		}
	}
	return nil
}

// checkSubresource refuses a subresource that a kind of Kubernetes does not have. A kind
// of the same name in a group that is written out may be a custom one.
func (s kindSelector) checkSubresource(path string) error {
	if s.subresource == "" {
		return nil
	}
	for _, r := range s.builtins() {
		has := r.Subresources()
		if s.kind == podKind && s.subresource == "log" {
			return field.Fail(path, "%s/log is only read, and a read is not admitted: restrict it by RBAC", s.kind)
		}
		if len(has) == 0 {
			return field.Fail(path, "%s has no subresources, and %s/%s would match nothing; for a custom kind of that name write its group, as in GROUP/VERSION/%s",
				s.kind, s.kind, s.subresource, s.kind)
		}
		if !wildcard.Match(s.subresource, "") && !slices.ContainsFunc(has, func(sub string) bool { return wildcard.Match(s.subresource, sub) }) {
			return field.Fail(path, "%s has no subresource %q, and would match nothing: it has %s", s.kind, s.subresource, strings.Join(has, ", "))
		}
	}
	return nil
}

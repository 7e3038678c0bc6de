package gate

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// FailOpen reports whether a call about the subject that could not be evaluated (a panic,
// a full queue, a truncated body) may be admitted. Every policy that may match the subject
// must fail open or enforce nothing. No override may deny anything there, since an
// unverified image may be the denied one. It matches the subject's group, version, kind,
// subresource, namespace and time. A bare subject without a namespace may be in any, since
// an unread image review has none. Without policies the answer is no.
func (s Snapshot) FailOpen(subject *policy.Subject) bool {
	if s.Policies == nil {
		return false
	}
	if s.Mirrors.Denies() && subject.Kind == "Pod" || s.Policies.MayDeny(subject) {
		return false
	}
	for _, p := range s.Policies.Policies() {
		if !p.FailOpen && !p.AuditOnly && mayConcern(p, subject) {
			return false
		}
	}
	return true
}

// mayConcern reports whether a policy may match a subject. One without targets may match
// anything, unless it has no rule, or only rules about documents that are no objects.
func mayConcern(p *policy.Policy, subject *policy.Subject) bool {
	isAnywhere := subject.Bare && subject.Namespace == ""
	if p.Namespace != "" && p.Namespace != subject.Home() && !isAnywhere {
		return false
	}
	for _, m := range p.Mutations {
		if anyConcerns(m.Targets(), subject) {
			return true
		}
	}
	for _, v := range p.Validations {
		if anyConcerns(v.Targets(), subject) {
			return true
		}
	}
	if len(p.Targets) == 0 {
		onlyDocuments := len(p.Rules) > 0 && !slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return !policy.OnlyDocuments(r) })
		return !onlyDocuments && (len(p.Rules) > 0 || p.Broken != nil)
	}
	return anyConcerns(p.Targets, subject)
}

func anyConcerns(targets []policy.Target, subject *policy.Subject) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool { return t.Means(subject) })
}

package match

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// To a subresource something else is sent than the object that it is of: what is sent
// to Pod/exec is a PodExecOptions. Rules name the object.

// sent is what is sent to a subresource of the core group's kinds.
type sent struct{ subresource, group, kind, of string }

// anything is the kind of objects that have a subresource, where many have it.
const anything = "*"

func allSent() []sent {
	return []sent{
		{"exec", "", "PodExecOptions", "Pod"},
		{"attach", "", "PodAttachOptions", "Pod"},
		{"portforward", "", "PodPortForwardOptions", "Pod"},
		{"proxy", "", "PodProxyOptions", "Pod"},
		{"proxy", "", "ServiceProxyOptions", "Service"},
		{"proxy", "", "NodeProxyOptions", "Node"},
		{"binding", "", "Binding", "Pod"},
		{"eviction", "policy", "Eviction", "Pod"},
		{"token", "authentication.k8s.io", "TokenRequest", "ServiceAccount"},
		{"scale", "autoscaling", "Scale", anything},
	}
}

// matchesSent reports whether the selector means the object to whose subresource a
// subject is sent. Of what is sent to the subresource of many kinds nobody can tell of
// which: then the selector is taken to mean it.
func (s kindSelector) matchesSent(subject *policy.Subject) bool {
	if subject.Subresource == "" || s.subresource == "" {
		return false
	}
	return slices.ContainsFunc(allSent(), func(one sent) bool {
		if one.subresource != subject.Subresource || one.kind != subject.Kind || one.group != subject.Group || !wildcard.Match(s.subresource, one.subresource) {
			return false
		}
		return one.of == anything || wildcard.Match(s.kind, one.of) && wildcard.Match(s.group, "") && wildcard.Match(s.version, "v1")
	})
}

// WithSent adds to targets what is sent to the subresources among them, of which the
// rule is asked, too.
func WithSent(targets []policy.Target) []policy.Target {
	list := targets
	for _, t := range targets {
		if t.Subresource == "" || t.Kind == "*" {
			continue
		}
		for _, one := range allSent() {
			if wildcard.Match(t.Subresource, one.subresource) && (one.of == anything || wildcard.Match(t.Kind, one.of)) {
				more := t
				more.Group, more.Version, more.Kind, more.Subresource = one.group, "*", one.kind, one.subresource
				list = JoinTargets(list[:len(list):len(list)], []policy.Target{more})
			}
		}
	}
	return list
}

// WithoutSent leaves out what WithSent adds: the API server is asked about objects and
// their subresources.
func WithoutSent(targets []policy.Target) []policy.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(t policy.Target) bool {
		return slices.ContainsFunc(allSent(), func(one sent) bool {
			return t.Kind == one.kind && t.Group == one.group && t.Subresource == one.subresource && t.Version == "*"
		})
	})
}

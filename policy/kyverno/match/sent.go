package match

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// The body of a request for a subresource is often of another kind than the object that
// the subresource belongs to: that of Pod/exec is a PodExecOptions. Rules name the object.

// sent is the kind of the body for a subresource of the core group's kinds.
type sent struct{ subresource, group, kind, of string }

// anything is the kind of objects that have a subresource, where many have it.
const anything = "*"

func allSent() []sent {
	return []sent{
		{"exec", "", "PodExecOptions", podKind},
		{"attach", "", "PodAttachOptions", podKind},
		{"portforward", "", "PodPortForwardOptions", podKind},
		{"proxy", "", "PodProxyOptions", podKind},
		{"proxy", "", "ServiceProxyOptions", "Service"},
		{"proxy", "", "NodeProxyOptions", "Node"},
		{"binding", "", "Binding", podKind},
		{"eviction", "policy", "Eviction", podKind},
		{"token", "authentication.k8s.io", "TokenRequest", "ServiceAccount"},
		{"scale", "autoscaling", "Scale", anything},
	}
}

// matchesSent reports whether the selector selects the object to whose subresource a
// subject is sent. The object of a Scale may be of many kinds, so that a selector which
// names one is indeterminate.
func (s *kindSelector) matchesSent(subject *policy.Subject) logic.Value {
	if !wildcard.Match(s.subresource, subject.Subresource) {
		return logic.Is(false)
	}
	for _, one := range allSent() {
		if one.subresource != subject.Subresource || one.kind != subject.Kind || one.group != subject.Group {
			continue
		}
		if one.of == anything {
			return logic.Indeterminate(fmt.Errorf("the rule selects %s of the kind %s, and the request does not name the kind of the object whose %s it is", one.subresource, s.kind, one.subresource))
		}
		if wildcard.Match(s.kind, one.of) && wildcard.Match(s.group, "") && wildcard.Match(s.version, "v1") {
			return logic.Is(true)
		}
	}
	return logic.Is(false)
}

// WithSent adds to targets the kinds of the bodies for the subresources among them, to
// which the rule applies, too.
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

// WithoutSent leaves out what WithSent adds: webhook rules name objects and their
// subresources.
func WithoutSent(targets []policy.Target) []policy.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(t policy.Target) bool {
		return slices.ContainsFunc(allSent(), func(one sent) bool {
			return t.Kind == one.kind && t.Group == one.group && t.Subresource == one.subresource && t.Version == "*"
		})
	})
}

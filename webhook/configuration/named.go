package configuration

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/unsent"
)

// attention defines when a kind has a webhook.
type attention int

const (
	// always: rules about it apply without limits.
	always attention = iota
	// ifNamed: it has a webhook only for rules about objects that name it, not by a pattern.
	ifNamed
	// ifNamedOpen is ifNamed, and fails open: without these objects a cluster cannot be repaired.
	ifNamedOpen
	// ifNamedDocument is ifNamedOpen, except for the gateway's own accounts, which write the status
	// of policies.
	ifNamedDocument
	// ifNamedRecord is ifNamedDocument, except in recordNamespaces. Nodes and leaders renew such
	// objects constantly, and the gateway writes some for its own decisions.
	ifNamedRecord
	never
)

// recordNamespaces are the namespaces in which cluster components keep their Leases and Events.
func recordNamespaces() []string { return []string{"kube-node-lease", "kube-system"} }

// Reasons for excluded kinds, for warnings.
const (
	repairable = "a cluster must be repairable while its gateway is down"
	ownDocs    = "the gateway's own reads and writes must not depend on it"
)

// attention returns when a resource has a webhook, and the reason for all values except always.
func (r Resource) attention() (attention, string) {
	if why, _ := unsent.Why(r.Group, r.Kind); why != "" {
		return never, why
	}
	switch r.Group {
	case "":
		switch r.Kind {
		case "Namespace":
			return ifNamed, repairable
		case "Node", "Binding":
			return ifNamedOpen, repairable
		case "Event":
			return ifNamedRecord, ownDocs
		}
	case "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io":
		return ifNamedOpen, repairable
	case "coordination.k8s.io", "events.k8s.io":
		return ifNamedRecord, ownDocs
	case "reports.kyverno.io", "wgpolicyk8s.io", "openreports.io":
		return never, ownDocs
	}
	if policy.IsDocument(r.Group) {
		return ifNamedDocument, repairable
	}
	return always, ""
}

// leftOut returns the reason why a target does not include a resource, or empty if it does.
func (t subjects) leftOut(r Resource, everywhere bool, namespaces map[string]bool) string {
	when, why := r.attention()
	if when == ifNamedRecord && !everywhere && !slices.ContainsFunc(slices.Collect(maps.Keys(namespaces)), isForRecords) {
		return why
	}
	if when == always || when != never && t.objects && !isPattern(t.Kind) {
		return ""
	}
	return why
}

// isForRecords reports whether Leases and Events of a namespace are included.
func isForRecords(namespace string) bool { return !slices.Contains(recordNamespaces(), namespace) }

// narrow applies the limits of the kind to a setting, regardless of policies.
func (s *setting) narrow(r Resource) {
	when, _ := r.attention()
	s.closed = s.closed && when < ifNamedOpen
	s.others, s.record = when == ifNamedDocument || when == ifNamedRecord, when == ifNamedRecord
	if s.record {
		s.seconds = min(s.seconds, recordSeconds)
	}
}

// add adds a policy's setting for the resource, everywhere or in namespaces.
func (a *requirement) add(added *setting, everywhere bool, namespaces map[string]bool) {
	if everywhere {
		a.everywhere = added.and(a.everywhere)
	}
	for namespace := range namespaces {
		if !added.record || isForRecords(namespace) {
			a.within[namespace] = added.and(a.within[namespace])
		}
	}
}

// othersOnly is the condition that excludes requests of the gateway's own accounts. A denied Event
// would otherwise cause another Event that is denied, without end.
func (in Input) othersOnly() string {
	own := "system:serviceaccount:" + in.Namespace + ":"
	expression := "!request.userInfo.username.startsWith(" + quoted(own) + ")"
	accounts := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(in.Accounts))), func(account string) bool {
		return strings.HasPrefix(account, own)
	})
	if len(accounts) == 0 {
		return expression
	}
	for i, account := range accounts {
		accounts[i] = quoted(account)
	}
	return expression + " && !(request.userInfo.username in [" + strings.Join(accounts, ", ") + "])"
}

// quoted returns a string literal of CEL. Its escapes of printable text are those of Go.
func quoted(text string) string { return strconv.QuoteToASCII(text) }

// HasLimits reports whether a kind has a webhook under limits alone, or none.
func HasLimits(group, kind string) bool {
	when, _ := Resource{Group: group, Kind: kind}.attention()
	return when != always
}

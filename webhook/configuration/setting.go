package configuration

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// setting combines the policies for a resource in some namespaces. It is immutable.
type setting struct {
	// closed: a policy fails closed. outside: an image may be outside of spec, or something else
	// there may bring the object under a policy.
	closed, outside bool
	// labelled: the setting applies only to namespaces with Input.Labelled's label.
	labelled bool
	// others: the gateway's own accounts are excluded, see ifNamedDocument. record: the resource is
	// Leases or Events, see ifNamedRecord.
	others, record bool
	seconds        int32
	operations     []string
	// versions in cluster policies, and in namespaced ones.
	cluster, tenants versions
}

// newSetting returns the setting of one target of a policy for a resource in one of its versions.
func newSetting(p *policy.Policy, r Resource, operations []string) *setting {
	return &setting{
		// An audit enforces nothing, so it must not block requests while the gateway is down.
		closed: !p.FailOpen && !p.AuditOnly, outside: looksOutside(p, r),
		seconds: timeoutSeconds(p.Timeout), operations: operations,
		cluster: versions{any: []string{r.Version}},
	}
}

// settle completes a setting that belongs to one policy with all its versions.
func (q *requirements) settle(p *policy.Policy, about *requirement, s *setting) *setting {
	settled := *s
	resource, _, _ := strings.Cut(about.name.resource, "/")
	all := q.served[name{about.name.group, resource}]
	own := versions{common: s.cluster.any, any: s.cluster.any}
	if len(own.any) < len(all) {
		own.narrow = own.any
		about.narrow[p.ID()] = true
	}
	settled.cluster, settled.tenants = own, versions{}
	if p.Namespace != "" {
		settled.cluster, settled.tenants = versions{}, own
	}
	return &settled
}

// and combines two settings; other may be nil.
func (s *setting) and(other *setting) *setting {
	if other == nil {
		return s
	}
	return &setting{
		closed: s.closed || other.closed, outside: s.outside || other.outside, labelled: s.labelled && other.labelled,
		others: s.others || other.others, record: s.record || other.record,
		seconds:    max(s.seconds, other.seconds),
		operations: union(s.operations, other.operations),
		cluster:    s.cluster.and(other.cluster), tenants: s.tenants.and(other.tenants),
	}
}

// versions are the versions of a resource that policies name.
type versions struct {
	// common are the versions that every policy names, any those that at least one names, and
	// narrow those of policies that do not name all served versions.
	common, any, narrow []string
}

func (v versions) and(other versions) versions {
	switch {
	case len(v.any) == 0:
		return other
	case len(other.any) == 0:
		return v
	}
	return versions{common: intersection(v.common, other.common), any: union(v.any, other.any), narrow: union(v.narrow, other.narrow)}
}

// listed returns the versions for a rule. The API server converts an object only if its version is
// not listed. Therefore these are the versions that every policy names. If there are none, they are
// those that single policies name, and parts is true.
func (v versions) listed() (list []string, parts bool) {
	if len(v.common) > 0 || len(v.any) == 0 {
		return v.common, false
	}
	return v.narrow, true
}

// versions returns the versions for a rule; parts means that some policies do not match all of
// them. Versions in namespaced policies never hide an object from cluster policies.
func (s *setting) versions() (list []string, parts bool) {
	list, parts = s.cluster.listed()
	own, ownParts := s.tenants.listed()
	switch {
	case len(own) == 0:
		return list, parts
	case len(list) == 0:
		return own, ownParts
	case parts:
		return list, true
	}
	if both := intersection(list, own); len(both) > 0 {
		return both, ownParts
	}
	return list, true
}

// union returns the sorted union of a and b, and changes neither.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// intersection returns the elements of both a and b, in the order of a.
func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// form is a resolved setting in comparable form, as a webhook and its rule contain it.
type form struct {
	closed, spec, labelled, others, record bool
	seconds                                int32
	// operations and versions are sorted and joined by commas.
	operations, versions string
	parts                bool
}

func (a *requirement) form(s *setting) form {
	w, _ := Resource{Group: a.name.group, Kind: a.kind}.workload()
	list, parts := s.versions()
	return form{
		closed: s.closed, spec: w.inSpec && !s.outside, labelled: s.labelled, others: s.others, record: s.record, seconds: s.seconds,
		operations: strings.Join(s.operations, ","), versions: strings.Join(list, ","), parts: parts,
	}
}

// rule returns the form as a rule without resources.
func (f form) rule(group string, scope admission.ScopeType) admission.RuleWithOperations {
	rule := admission.RuleWithOperations{Rule: admission.Rule{APIGroups: []string{group}, APIVersions: strings.Split(f.versions, ","), Scope: &scope}}
	for o := range strings.SplitSeq(f.operations, ",") {
		rule.Operations = append(rule.Operations, admission.OperationType(o))
	}
	return rule
}

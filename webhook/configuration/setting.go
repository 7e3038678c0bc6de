package configuration

import (
	"slices"
	"strings"
	"time"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// Bounds of a webhook's timeout, in seconds, as the API server has them, and
// what stands for a policy that says nothing, as in Kyverno.
const minSeconds, defaultSeconds, maxSeconds = 1, 10, 30

// setting is what policies say together of a resource in some namespaces. It is
// not changed once made.
type setting struct {
	// closed says that a policy fails closed, outside that an image may be outside
	// of spec.
	closed, outside bool
	// labelled says that it holds only in namespaces with Input.Labelled's label.
	labelled bool
	// record: it is about Leases or Events, see ifNamedRecord.
	record     bool
	seconds    int32
	operations []string
	// versions that policies of the cluster speak of, and those of namespaces.
	cluster, tenants versions
}

// newSetting returns what one target of a policy says of a resource in one of
// its versions.
func newSetting(p *policy.Policy, r Resource, operations []string) *setting {
	return &setting{
		// Of an audit nothing enforces: it must not stop anybody by being down.
		closed: !p.FailOpen && !p.AuditOnly, outside: looksOutside(p, r),
		seconds: seconds(p.Timeout), operations: operations,
		cluster: versions{any: []string{r.Version}},
	}
}

// settle says of a setting, of which all versions are one policy's, which policy
// that is.
func (q *questions) settle(p *policy.Policy, about *question, s *setting) *setting {
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

// and returns what two settings say together; other may be nil.
func (s *setting) and(other *setting) *setting {
	if other == nil {
		return s
	}
	return &setting{
		closed: s.closed || other.closed, outside: s.outside || other.outside, labelled: s.labelled && other.labelled,
		record:     s.record || other.record,
		seconds:    max(s.seconds, other.seconds),
		operations: union(s.operations, other.operations),
		cluster:    s.cluster.and(other.cluster), tenants: s.tenants.and(other.tenants),
	}
}

// versions are those of a resource that policies speak of.
type versions struct {
	// common are those that every policy speaks of, any those that one does, and
	// narrow those of policies which do not speak of all that are served.
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

// listed returns the versions to ask in. The API server converts an object that
// comes in another one, but not one that comes in a version which is listed: so
// these are the versions of which every policy speaks, and only where there is
// none those that some name, which parts means.
func (v versions) listed() (list []string, parts bool) {
	if len(v.common) > 0 || len(v.any) == 0 {
		return v.common, false
	}
	return v.narrow, true
}

// versions returns the versions to ask in; parts says that not every policy is
// asked about each of them. What a namespace's own policies name never keeps an
// object from the policies of the cluster.
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

func seconds(timeout time.Duration) int32 {
	if timeout == 0 {
		return defaultSeconds
	}
	bounded := min(max(timeout, minSeconds*time.Second), maxSeconds*time.Second)
	return int32((bounded + time.Second - 1) / time.Second)
}

// union returns what is in a or b, sorted; neither is changed.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// intersection returns what is in a and b, in the order of a.
func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// form is what a webhook, and a rule in it, say of a resource: a setting that was
// decided, and can be compared.
type form struct {
	closed, spec, labelled, record bool
	seconds                        int32
	// operations and versions are sorted and joined by commas.
	operations, versions string
	parts                bool
}

func (a *question) form(s *setting) form {
	w, _ := Resource{Group: a.name.group, Kind: a.kind}.workload()
	list, parts := s.versions()
	return form{
		closed: s.closed, spec: w.inSpec && !s.outside, labelled: s.labelled, record: s.record, seconds: s.seconds,
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

package configuration

import (
	"reflect"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
)

// name is a resource without a version. Each object is matched in one version only.
type name struct{ group, resource string }

// requirement collects what the policies require for one resource.
type requirement struct {
	name       name
	kind       string
	namespaced bool
	// everywhere combines the policies for all namespaces, and those with namespaces that a
	// selector cannot express; nil if there are none.
	everywhere *setting
	// within combines, by namespace, the policies that are limited to literal namespaces.
	within map[string]*setting
	// narrow holds the IDs of policies that name only some of its versions.
	narrow map[string]bool
}

// phase is an endpoint. The first two correspond to one configuration each. The shadow covers both,
// and is in the validating configuration, which cannot change objects.
type phase int

const (
	mutatingPhase phase = iota
	validatingPhase
	shadowPhase
)

// requirements collects the requirements of policies for one endpoint.
type requirements struct {
	phase      phase
	halved     bool                                // see bounds
	mutates    func(*policy.Policy, Resource) bool // whether images in its objects are changed
	resources  []Resource
	excluded   []string
	exceptions []*policy.Exception
	labelled   func(*policy.Policy) bool // may be nil
	required   map[name]*requirement
	// served holds the versions of each resource.
	served map[name][]string
	// kinds holds the resources of each kind.
	kinds map[string][]Resource
	// known holds the resources with a webhook, in each version.
	known map[[3]string]Resource
	// apart are the namespaces that all general webhooks exclude, see setApart.
	apart    []string
	warnings []Warning
}

// requirementsAt evaluates the policies for one endpoint.
func (in Input) requirementsAt(at phase) *requirements {
	q := &requirements{
		phase: at, halved: in.Shadow, mutates: func(p *policy.Policy, r Resource) bool { return in.mutates(r) || in.pinsNamed(p, r) }, resources: in.Resources,
		exceptions: in.Exceptions, labelled: in.Labelled.Is, required: make(map[name]*requirement), served: make(map[name][]string),
		kinds: make(map[string][]Resource), known: make(map[[3]string]Resource),
	}
	for _, r := range in.Resources {
		n := name{r.Group, r.Name}
		q.served[n] = union(q.served[n], []string{r.Version})
		q.kinds[r.Kind] = append(q.kinds[r.Kind], r)
	}
	q.excluded = slices.Compact(slices.Sorted(slices.Values(append([]string{in.Namespace}, in.ExcludedNamespaces...))))
	for _, p := range in.Policies {
		if p.Broken != nil && len(p.Targets) == 0 {
			q.warn(p, "is broken, and matches nothing at admission until it is corrected")
		}
		q.policy(p)
	}
	if in.Mirrors != NoMirrors {
		q.policy(in.mirrorsPolicy())
	}
	return q
}

// policy adds the requirements of one policy. Its targets are combined first, because the versions
// that one policy names belong together.
func (q *requirements) policy(p *policy.Policy) {
	own := make(map[name]*requirement)
	for _, t := range imageTargets(p) {
		q.target(p, subjects{Target: t}, own)
	}
	if q.phase != validatingPhase {
		for _, m := range p.Mutations {
			q.objects(p, m.Targets(), own)
		}
		for _, g := range p.Generations {
			q.triggers(p, g, own)
		}
		for _, a := range p.Alterations {
			q.triggers(p, a, own)
		}
	}
	if q.phase != mutatingPhase {
		for _, v := range p.Validations {
			q.objects(p, v.Targets(), own)
		}
	}
	for n, added := range own {
		total := requirementOf(q.required, n, added)
		if added.everywhere != nil {
			total.everywhere = q.settle(p, total, added.everywhere).and(total.everywhere)
		}
		for namespace, s := range added.within {
			total.within[namespace] = q.settle(p, total, s).and(total.within[namespace])
		}
	}
}

// imageTargets returns the targets of a policy's image rules: its targets without those of the
// other rules.
func imageTargets(p *policy.Policy) []policy.Target {
	if len(p.Mutations)+len(p.Validations)+len(p.Generations)+len(p.Alterations) == 0 {
		return p.Targets
	}
	var targets []policy.Target
	for _, r := range p.Rules {
		selective, ok := r.(policy.Selective)
		if !ok {
			return p.Targets
		}
		for _, t := range selective.Targets() {
			if !slices.ContainsFunc(targets, func(known policy.Target) bool { return reflect.DeepEqual(known, t) }) {
				targets = append(targets, t)
			}
		}
	}
	return targets
}

// trigger is a rule that changes objects other than the one in the request.
type trigger interface {
	Targets() []policy.Target
	NeedsRequester() bool
}

// triggers adds the creation of objects in which the creator is recorded, and their updates, which
// must not change that record. These webhooks fail open: without a record the rule does not
// generate.
func (q *requirements) triggers(p *policy.Policy, of trigger, own map[name]*requirement) {
	if !of.NeedsRequester() {
		return
	}
	open := *p
	open.FailOpen = true
	for _, t := range of.Targets() {
		if len(t.Operations) > 0 && !slices.Contains(t.Operations, string(admission.Create)) || t.Subresource != "" {
			continue
		}
		t.Operations = []string{string(admission.Create), string(admission.Update)}
		q.target(&open, subjects{Target: t, objects: true}, own)
	}
}

// objects adds the requirements of a rule about objects to those of its policy.
func (q *requirements) objects(p *policy.Policy, targets []policy.Target, own map[name]*requirement) {
	for _, t := range targets {
		q.target(p, subjects{Target: t, objects: true}, own)
	}
}

// subjects are what a rule matches: objects of its target's kinds, or images in them.
type subjects struct {
	policy.Target
	objects bool
}

// target adds the requirements of one target to those of its policy.
func (q *requirements) target(p *policy.Policy, t subjects, own map[name]*requirement) {
	operations := t.operations()
	if len(operations) == 0 {
		return
	}
	namespaces, everywhere, confined := q.namespacesOf(p, t.Target)
	if none := !everywhere && len(namespaces) == 0; none || t.SelectsAmong(q.excluded) {
		q.warn(p, "%s: all its namespaces are excluded or have invalid names: it has no effect at admission", written(t.Target))
		q.warnings[len(q.warnings)-1].Excluded = q.excludes(p)
		if none {
			return
		}
	}
	found, sends, left, candidates := false, false, "", q.resources
	if !isPattern(t.Kind) {
		candidates = q.kinds[t.Kind]
	}
	for _, r := range candidates {
		if !wildcard.Match(t.Group, r.Group) || !wildcard.Match(t.Version, r.Version) || !wildcard.Match(t.Kind, r.Kind) {
			continue
		}
		if !isPattern(t.Kind) {
			found = true
		}
		if confined && !r.Namespaced || !t.objects && (isPattern(t.Kind) && !carriesImages(p, r) || q.phase == mutatingPhase && !q.mutates(p, r)) {
			continue
		}
		if why := t.leftOut(r, everywhere, namespaces); why != "" {
			left = why
			continue
		}
		sends = true
		for _, resource := range t.matched(r) {
			brought := t.bringing(resource, operations)
			if len(brought) == 0 {
				continue
			}
			required := requirementOf(own, name{r.Group, resource}, &requirement{kind: r.Kind, namespaced: r.Namespaced})
			added := newSetting(p, r, brought)
			added.outside = added.outside || t.objects || set.RematchesIn(p, &policy.Subject{Group: r.Group, Version: r.Version, Kind: r.Kind}, q.exceptions)
			added.narrow(r)
			added.labelled = q.labelled != nil && q.labelled(p)
			if q.phase == shadowPhase {
				added.shadowed()
			}
			required.add(added, everywhere, namespaces)
			q.known[[3]string{r.Group, r.Version, r.Name}] = r
		}
	}
	switch {
	case left != "" && (!sends && t.objects || !isPattern(t.Kind)):
		q.warn(p, "%s: the API server never sends it to the gateway: %s", written(t.Target), left)
	case isPattern(t.Kind):
	case isSent(t.Target): // its object is another target
	case !found:
		q.warn(p, "the API server serves no kind %s: correct the policy, or install the kind's definition, after which the policy takes effect", written(t.Target))
	case !t.objects && t.Subresource != "" && !wildcard.Match(t.Subresource, ephemeralContainers):
		q.warn(p, "%s: the API server never sends it to the gateway: this subresource contains no images", written(t.Target))
	}
}

// requirementOf returns the requirement for a resource, and makes one like another if it is missing.
func requirementOf(all map[name]*requirement, n name, like *requirement) *requirement {
	required := all[n]
	if required == nil {
		required = &requirement{name: n, kind: like.kind, namespaced: like.namespaced, within: map[string]*setting{}, narrow: map[string]bool{}}
		all[n] = required
	}
	return required
}

// bringing returns the operations on a resource that need a webhook. Ephemeral containers arrive
// only with UPDATE, so a target that names only CREATE does not include them.
func (t subjects) bringing(resource string, operations []string) []string {
	_, subresource, _ := strings.Cut(resource, "/")
	switch {
	case subresource == "" && len(t.Operations) == 0:
		return slices.DeleteFunc(slices.Clone(operations), func(o string) bool { return o == string(admission.Connect) })
	case subresource == ephemeralContainers, subresource != "" && !t.objects:
		return slices.DeleteFunc(slices.Clone(operations), func(o string) bool { return o != string(admission.Update) })
	}
	return operations
}

// matched returns the resources and subresources of r that t matches. A target for Pods without a
// subresource includes pods/ephemeralcontainers.
func (t subjects) matched(r Resource) []string {
	var names []string
	if t.Subresource == "" || t.Subresource == "*" {
		names = append(names, r.Name)
	}
	for _, subresource := range r.Subresources {
		added := subresource == ephemeralContainers && r.Group == "" && r.Kind == podKind
		if !added && !t.objects {
			continue
		}
		if added && t.Subresource == "" || t.Subresource != "" && wildcard.Match(t.Subresource, subresource) {
			names = append(names, r.Name+"/"+subresource)
		}
	}
	return names
}

// operations returns the operations of a target that a webhook can match. Images arrive only with
// CREATE and UPDATE.
func (t subjects) operations() []string {
	all := []string{string(admission.Create), string(admission.Update)}
	switch {
	case t.objects && len(t.Operations) > 0:
		all = append(all, string(admission.Delete), string(admission.Connect))
	case t.objects && t.Subresource != "":
		return append(all, string(admission.Connect))
	}
	if len(t.Operations) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(o string) bool { return !slices.Contains(t.Operations, o) })
}

// namespacesOf returns the literal namespaces that limit a policy's target, without the excluded ones,
// or that it applies everywhere. Confined reports that it matches only namespaced objects.
func (q *requirements) namespacesOf(p *policy.Policy, t policy.Target) (namespaces map[string]bool, everywhere, confined bool) {
	named := t.Namespaces
	if p.Namespace != "" {
		if len(named) > 0 && !slices.ContainsFunc(named, func(n string) bool { return wildcard.Match(n, p.Namespace) }) {
			return nil, false, true
		}
		named = []string{p.Namespace}
	}
	if len(named) == 0 {
		return nil, true, false
	}
	if slices.ContainsFunc(named, isPattern) {
		return nil, true, true
	}
	namespaces = make(map[string]bool)
	for _, n := range named {
		// A single invalid name would make the API server reject the whole configuration.
		if !slices.Contains(q.excluded, n) && len(validation.IsDNS1123Label(n)) == 0 {
			namespaces[n] = true
		}
	}
	return namespaces, false, true
}

// excludes reports whether all targets of a policy are in excluded namespaces.
func (q *requirements) excludes(p *policy.Policy) bool {
	return !slices.ContainsFunc(allTargets(p), func(t policy.Target) bool {
		namespaces, everywhere, _ := q.namespacesOf(p, t)
		return (everywhere || len(namespaces) > 0) && !t.SelectsAmong(q.excluded)
	})
}

// carriesImages reports whether a kind that matches a pattern has known images: the workload kinds
// of Kubernetes, and kinds with extractors.
func carriesImages(p *policy.Policy, r Resource) bool {
	if _, ok := r.workload(); ok {
		return true
	}
	return len(extractors(p, r)) > 0
}

// looksOutside reports whether an extractor of the policy reads fields outside of spec.
func looksOutside(p *policy.Policy, r Resource) bool {
	return slices.ContainsFunc(extractors(p, r), func(e policy.Extractor) bool { return !strings.HasPrefix(e.Path, "/spec/") })
}

func extractors(p *policy.Policy, r Resource) []policy.Extractor {
	subject := &policy.Subject{Group: r.Group, Version: r.Version, Kind: r.Kind, Operation: string(admission.Create)}
	var found []policy.Extractor
	for _, rule := range p.Rules {
		found = append(found, rule.Extractors(subject)...)
	}
	return found
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }

// written returns a target as a policy writes it, without wildcards for any group or version.
func written(t policy.Target) string {
	text := t.Kind
	if t.Version != "*" && t.Version != "" {
		text = t.Version + "/" + text
	}
	if t.Group != "*" && t.Group != "" {
		text = t.Group + "/" + text
	}
	if t.Subresource != "" {
		text += "/" + t.Subresource
	}
	return text
}

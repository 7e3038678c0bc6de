package configuration

import (
	"reflect"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// name is a resource, whatever the version: an object that is asked about in one
// version is not asked about in another as well.
type name struct{ group, resource string }

// question is what is asked about one resource.
type question struct {
	name       name
	kind       string
	namespaced bool
	// everywhere is what policies say that speak of all namespaces, or of what no
	// selector can mean; nil if none does.
	everywhere *setting
	// within is, by namespace, what policies say that are confined to literal ones.
	within map[string]*setting
	// narrow are the IDs of policies that name some of its versions only.
	narrow map[string]bool
}

// phase is a door. The first two are one of the two configurations each, and the
// shadow, which asks for what both do, stands in the validating one: who cannot patch
// changes nothing.
type phase int

const (
	mutatingDoor phase = iota
	validatingDoor
	shadowDoor
)

// questions collects what policies ask for at one door.
type questions struct {
	phase     phase
	halved    bool                                // see bounds
	mutates   func(*policy.Policy, Resource) bool // whether images in its objects are changed
	resources []Resource
	excluded  []string
	labelled  func(*policy.Policy) bool // may be nil
	asked     map[name]*question
	// served are the versions of each resource.
	served map[name][]string
	// kinds are the resources of each kind.
	kinds map[string][]Resource
	// known are those that are asked about, in each version.
	known    map[[3]string]Resource
	warnings []Warning
}

// ask works through the policies for one door.
func (in Input) ask(at phase) *questions {
	q := &questions{
		phase: at, halved: in.Shadow, mutates: func(p *policy.Policy, r Resource) bool { return in.mutates(r) || in.pinsNamed(p, r) }, resources: in.Resources, labelled: in.Labelled.Is, asked: make(map[name]*question), served: make(map[name][]string),
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
			q.warn(p, "is broken, and selects nothing at admission until it is corrected")
		}
		q.policy(p)
	}
	if in.Mirrors != NoMirrors {
		q.policy(in.mirrorsPolicy())
	}
	return q
}

// policy adds what one policy asks for: what its targets say together, for the
// versions that one policy names are meant to come all.
func (q *questions) policy(p *policy.Policy) {
	own := make(map[name]*question)
	for _, t := range imageTargets(p) {
		q.target(p, subjects{Target: t}, own)
	}
	if q.phase != validatingDoor {
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
	if q.phase != mutatingDoor {
		for _, v := range p.Validations {
			q.objects(p, v.Targets(), own)
		}
	}
	for n, said := range own {
		total := questionOf(q.asked, n, said)
		if said.everywhere != nil {
			total.everywhere = q.settle(p, total, said.everywhere).and(total.everywhere)
		}
		for namespace, s := range said.within {
			total.within[namespace] = q.settle(p, total, s).and(total.within[namespace])
		}
	}
}

// imageTargets are the kinds in which a policy's rules about images look for them: its
// targets, less those of its other rules.
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

// trigger is a rule about other objects than the one that is asked about.
type trigger interface {
	Targets() []policy.Target
	NeedsRequester() bool
}

// triggers adds the creation of those objects into which it is written who made them,
// and their updates, which must not change that. It stops nobody: what is not known is
// not generated.
func (q *questions) triggers(p *policy.Policy, of trigger, own map[name]*question) {
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

// objects adds what a rule about objects asks for to what its policy does.
func (q *questions) objects(p *policy.Policy, targets []policy.Target, own map[name]*question) {
	for _, t := range targets {
		q.target(p, subjects{Target: t, objects: true}, own)
	}
}

// subjects are what a rule speaks of: objects of the kinds of its target, or images
// in them.
type subjects struct {
	policy.Target
	objects bool
}

// target adds what one target asks for to what its policy does.
func (q *questions) target(p *policy.Policy, t subjects, own map[name]*question) {
	operations := t.operations()
	if len(operations) == 0 {
		return
	}
	namespaces, everywhere, confined := q.namespacesOf(p, t.Target)
	if !everywhere && len(namespaces) == 0 {
		q.warn(p, "%s: every namespace that it names is excluded, or no name of a namespace: nothing is asked on its behalf", written(t.Target))
		return
	}
	found, asks, left, candidates := false, false, "", q.resources
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
		if confined && !r.Namespaced || !t.objects && (isPattern(t.Kind) && !carriesImages(p, r) || q.phase == mutatingDoor && !q.mutates(p, r)) {
			continue
		}
		if why := t.leftOut(r, everywhere, namespaces); why != "" {
			left = why
			continue
		}
		asks = true
		for _, resource := range t.matched(r) {
			brought := t.bringing(resource, operations)
			if len(brought) == 0 {
				continue
			}
			asked := questionOf(own, name{r.Group, resource}, &question{kind: r.Kind, namespaced: r.Namespaced})
			said := newSetting(p, r, brought)
			said.outside = said.outside || t.objects
			said.narrow(r)
			said.labelled = q.labelled != nil && q.labelled(p)
			if q.phase == shadowDoor {
				said.shadowed()
			}
			asked.add(said, everywhere, namespaces)
			q.known[[3]string{r.Group, r.Version, r.Name}] = r
		}
	}
	switch {
	case left != "" && (!asks && t.objects || !isPattern(t.Kind)):
		q.warn(p, "%s: the API server never asks about it, for %s", written(t.Target), left)
	case isPattern(t.Kind):
	case isSent(t.Target): // its object is another target
	case !found:
		q.warn(p, "the API server serves no kind %s: correct the policy if that is a mistake; if its definition is yet to be installed, it is asked about from then on", written(t.Target))
	case !t.objects && t.Subresource != "" && !wildcard.Match(t.Subresource, ephemeralContainers):
		q.warn(p, "%s: the API server never asks about it, for this subresource brings no images", written(t.Target))
	}
}

// questionOf returns the question about a resource, which is made like another
// one if there is none.
func questionOf(all map[name]*question, n name, like *question) *question {
	asked := all[n]
	if asked == nil {
		asked = &question{name: n, kind: like.kind, namespaced: like.namespaced, within: map[string]*setting{}, narrow: map[string]bool{}}
		all[n] = asked
	}
	return asked
}

// bringing returns the operations on a resource that are asked about. An ephemeral
// container comes by UPDATE alone; who names only CREATE does not ask for it.
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

// matched returns the resources, and subresources, of r that t speaks of. A
// target without subresource that means Pods brings those containers that are
// added later.
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

// operations returns which operations a target speaks of that can be asked about.
// Images come by CREATE and UPDATE alone.
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

// namespacesOf returns the literal namespaces that a policy's target is confined
// to, less those that are excluded, or that it is asked about everywhere.
// Confined says that it speaks of nothing outside of namespaces.
func (q *questions) namespacesOf(p *policy.Policy, t policy.Target) (namespaces map[string]bool, everywhere, confined bool) {
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
		// One name that no namespace can have would have the API server refuse the
		// whole configuration.
		if !slices.Contains(q.excluded, n) && len(validation.IsDNS1123Label(n)) == 0 {
			namespaces[n] = true
		}
	}
	return namespaces, false, true
}

// carriesImages reports whether a kind that a pattern brought has images that
// are known: the kinds of Kubernetes that run some, and what extractors name.
func carriesImages(p *policy.Policy, r Resource) bool {
	if _, ok := r.workload(); ok {
		return true
	}
	return len(extractors(p, r)) > 0
}

// looksOutside reports whether an extractor of the policy looks outside of spec.
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

// written is a target as a policy writes it, without what stands for anything.
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

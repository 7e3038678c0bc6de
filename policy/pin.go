package policy

import "slices"

// Pinner is a Rule that may pin images.
type Pinner interface {
	Rule
	// PinsNamed reports whether the rule pins images in objects of the kinds that it
	// names itself, pods apart. A rule that follows from one about pods does not: the
	// pods that come of its objects are verified and pinned.
	PinsNamed() bool
}

// PinsNamed reports whether a rule pins images in objects, other than pods, of the
// kinds that it names itself.
func PinsNamed(rule Rule) bool {
	of, ok := rule.(Pinner)
	return ok && of.PinsNamed()
}

// PinsIn reports whether a rule of the policy that pins in the objects which it names
// may match a subject, by its kind and namespace.
func (p *Policy) PinsIn(subject *Subject) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return PinsNamed(r) && MayMatch(r, subject) })
}

// NamedKinds returns the kinds, other than pods, that such rules of the policy name, in
// the order of the document.
func (p *Policy) NamedKinds() []string {
	var kinds []string
	for _, r := range p.Rules {
		selective, ok := r.(Selective)
		if !ok || !PinsNamed(r) {
			continue
		}
		for _, t := range selective.Targets() {
			if isPod := t.Kind == "Pod" && (t.Group == "" || t.Group == "*"); !isPod && t.Subresource == "" && !slices.Contains(kinds, t.Kind) {
				kinds = append(kinds, t.Kind)
			}
		}
	}
	return kinds
}

// MayMatch reports whether a rule may match a subject, by its kinds and namespaces.
func MayMatch(r Rule, subject *Subject) bool {
	selective, ok := r.(Selective)
	return !ok || slices.ContainsFunc(selective.Targets(), func(t Target) bool { return t.Means(subject) })
}

// Package objectindex finds the rules about objects that may match a subject, by the kinds that they
// name.
package objectindex

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Rule is the element of an Index.
type Rule interface {
	Name() string
	Targets() []policy.Target
}

// Entry is a rule about objects with its policy.
type Entry[R Rule] struct {
	Policy *policy.Policy
	Rule   R
}

// Index finds the rules that may match a subject by its kind. The zero value is empty.
type Index[R Rule] struct {
	// All are the rules in the order of Add.
	All    []Entry[R]
	byKind map[string][]int
	any    []int // of kinds that are patterns
}

// Add adds rules of a policy, in their order.
func (x *Index[R]) Add(p *policy.Policy, rules []R) {
	if x.byKind == nil {
		x.byKind = map[string][]int{}
	}
	for _, rule := range rules {
		i := len(x.All)
		x.All = append(x.All, Entry[R]{Policy: p, Rule: rule})
		targets := rule.Targets()
		if len(targets) == 0 || slices.ContainsFunc(targets, func(t policy.Target) bool { return wildcard.Contains(t.Kind) }) {
			x.any = append(x.any, i)
			continue
		}
		for _, t := range targets {
			if list := x.byKind[t.Kind]; len(list) == 0 || list[len(list)-1] != i {
				x.byKind[t.Kind] = append(list, i)
			}
		}
	}
}

// Of returns the positions of the rules that may match a subject, in order.
func (x *Index[R]) Of(subject *policy.Subject) []int {
	list := x.byKind[subject.Kind]
	switch {
	case subject.IsBody(): // its kind is not the one that rules name
		list = make([]int, len(x.All))
		for i := range list {
			list[i] = i
		}
	case len(x.any) > 0:
		list = slices.Concat(list, x.any)
		slices.Sort(list)
	}
	outside := func(i int) bool {
		p := x.All[i].Policy
		return p.Namespace != "" && p.Namespace != subject.Home() || policy.OnlyDocuments(x.All[i].Rule) != subject.Document
	}
	if !slices.ContainsFunc(list, outside) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), outside)
}

// May reports whether a rule may match a subject.
func (x *Index[R]) May(subject *policy.Subject) bool {
	return slices.ContainsFunc(x.Of(subject), func(i int) bool {
		targets := x.All[i].Rule.Targets()
		return len(targets) == 0 || slices.ContainsFunc(targets, func(t policy.Target) bool { return t.Means(subject) && t.IsAt(subject.Operation) })
	})
}

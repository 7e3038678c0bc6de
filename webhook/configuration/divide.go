package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits on webhooks for single namespaces. They keep a configuration far below the API server's
// limit on objects (1.5 MiB). Otherwise users that can write policies in many namespaces could
// prevent its update.
const (
	// maxNamespaces bounds the namespaces in one selector.
	maxNamespaces = 500
	// maxNames bounds the namespaces in all these selectors; a name has at most 63 bytes.
	maxNames = 6000
	// maxForms bounds the different forms of one resource in namespaces.
	maxForms = 16
	// maxParts bounds these webhooks; each has about 2 KiB.
	maxParts = 200
)

// bounds returns maxNames and maxParts, or half of each if a shadow is built in parallel with the
// enforcing webhooks.
func (q *requirements) bounds() (names, parts int) {
	if q.halved {
		return maxNames / 2, maxParts / 2
	}
	return maxNames, maxParts
}

// part is a resource in some namespaces, as one webhook contains it.
type part struct {
	*requirement
	form form
	// namespaces are the included ones, or, if except is set, the excluded ones in addition to
	// q.excluded.
	namespaces []string
	except     bool
}

// divide splits every resource into parts with disjoint namespaces. Policies that are limited to
// namespaces have no effect elsewhere. Otherwise a user with write access to policies in one
// namespace could set the timeout and the failure policy of all namespaces.
func (q *requirements) divide() []part {
	var own, general, all []part
	names, parts := q.bounds()
	for _, n := range slices.SortedFunc(maps.Keys(q.required), func(a, b name) int {
		return strings.Compare(a.group+" "+a.resource, b.group+" "+b.resource)
	}) {
		a := q.required[n]
		apart := a.own()
		if len(apart) > maxForms {
			q.warnings = append(q.warnings, Warning{Message: fmt.Sprintf("policies limited to namespaces have more than %d different settings for %s: the strictest failure setting and the longest timeout apply to all of them", maxForms, n)})
			apart = a.shared(apart)
		}
		differing, most := 0, 0
		for _, p := range apart {
			differing, most = differing+len(p.namespaces), max(most, len(p.namespaces))
		}
		needed := differing
		if a.everywhere != nil {
			needed, most = 2*differing, differing
		}
		if most > maxNamespaces || needed > names || len(apart) > parts {
			q.warnings = append(q.warnings, Warning{Message: fmt.Sprintf("policies limited to namespaces match %s in %d namespaces, more than selectors can list (%d, %d in all): their failure setting and timeout apply to all namespaces", n, differing, maxNamespaces, maxNames)})
			all = append(all, a.everywhereAll())
			continue
		}
		names, parts = names-needed, parts-len(apart)
		own = append(own, apart...)
		if a.everywhere != nil {
			general = append(general, part{requirement: a, form: a.form(a.everywhere), namespaces: allNamespaces(apart), except: true})
		}
	}
	all = slices.Concat(own, q.setApart(general, names, parts), all)
	slices.SortStableFunc(all, func(a, b part) int {
		return strings.Compare(a.name.group+" "+a.name.resource, b.name.group+" "+b.name.resource)
	})
	for _, p := range all {
		q.reported(p)
	}
	return all
}

// setApart makes all general parts exclude the same namespaces, and adds parts for those that a
// resource did not exclude itself. So one general webhook has all resources of its class, and a
// policy for one namespace does not move some of them to a webhook of another name. If that
// exceeds the limits, each resource excludes its own namespaces alone.
func (q *requirements) setApart(general []part, names, parts int) []part {
	apart := slices.Compact(allNamespaces(general))
	var all []part
	for _, p := range general {
		if p.itself() {
			all = append(all, p)
			continue
		}
		rest := p
		rest.except = false
		rest.namespaces = slices.DeleteFunc(slices.Clone(apart), func(n string) bool {
			return !p.namespaced || slices.Contains(p.namespaces, n) || p.form.record && !isForRecords(n)
		})
		if len(rest.namespaces) > 0 {
			names, parts = names-len(rest.namespaces), parts-1
			all = append(all, rest)
		}
		p.namespaces = apart
		all = append(all, p)
	}
	if len(apart) > maxNamespaces || names < 0 || parts < 0 {
		return general
	}
	q.apart = apart
	return all
}

// own groups the namespaces with a form other than the general one by that form.
func (a *requirement) own() []part {
	var parts []part
	var general form
	if a.everywhere != nil {
		general = a.form(a.everywhere)
	}
	at := make(map[form]int)
	for _, namespace := range slices.Sorted(maps.Keys(a.within)) {
		f := a.form(a.within[namespace].and(a.everywhere))
		if a.everywhere != nil && f == general {
			continue
		}
		i, ok := at[f]
		if !ok {
			i = len(parts)
			at[f] = i
			parts = append(parts, part{requirement: a, form: f})
		}
		parts[i].namespaces = append(parts[i].namespaces, namespace)
	}
	return parts
}

// shared merges several parts into one.
func (a *requirement) shared(own []part) []part {
	added := a.everywhere
	namespaces := allNamespaces(own)
	for _, namespace := range namespaces {
		added = a.within[namespace].and(added)
	}
	return []part{{requirement: a, form: a.form(added), namespaces: namespaces}}
}

// everywhereAll combines all policies, for all namespaces.
func (a *requirement) everywhereAll() part {
	added := a.everywhere
	for _, namespace := range slices.Sorted(maps.Keys(a.within)) {
		added = a.within[namespace].and(added)
	}
	return part{requirement: a, form: a.form(added), except: true}
}

func allNamespaces(parts []part) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.namespaces...)
	}
	slices.Sort(all)
	return all
}

// reported adds a warning for each policy that names only some of a part's versions.
func (q *requirements) reported(p part) {
	if p.form.parts {
		for id := range p.narrow {
			q.warnings = append(q.warnings, Warning{Policy: id, Message: fmt.Sprintf(
				"%s: no version is named by all policies that match it, so the API server calls in %s, and objects in a version that this policy does not name could not be verified: name the same version in all of them, or none",
				p.name, p.form.versions)})
		}
	}
}

// String returns the resource and its group, as in tasks.tekton.dev.
func (n name) String() string {
	if n.group == "" {
		return n.resource
	}
	return n.resource + "." + n.group
}

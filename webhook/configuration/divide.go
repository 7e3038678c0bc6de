package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of what the namespaces may have of their own, so that a configuration
// stays far below what the API server stores (1.5 MiB): who may write policies in
// many namespaces must not keep it from being written.
const (
	// maxNamespaces is how many namespaces one selector names.
	maxNamespaces = 500
	// maxNames is how many names all selectors have for that; one has 63 bytes at
	// most.
	maxNames = 6000
	// maxForms is how many forms one resource has in namespaces.
	maxForms = 16
	// maxParts is how many webhooks there are for that; one has some 2 KiB.
	maxParts = 200
)

// bounds returns maxNames and maxParts, of which a shadow and what is enforced beside it
// have one half each.
func (q *questions) bounds() (names, parts int) {
	if q.halved {
		return maxNames / 2, maxParts / 2
	}
	return maxNames, maxParts
}

// part is a resource in some namespaces: what stands in one webhook.
type part struct {
	*question
	form form
	// namespaces are those that are meant, or, if except is set, those that are
	// not, beside the excluded ones.
	namespaces []string
	except     bool
}

// divide puts every resource into parts that have no namespace in common. What
// policies say that are confined to namespaces makes no difference elsewhere:
// else whoever may write policies in one namespace would decide how long
// everybody waits, and who is stopped while the gateway is away.
func (q *questions) divide() []part {
	var all []part
	names, parts := q.bounds()
	for _, n := range slices.SortedFunc(maps.Keys(q.asked), func(a, b name) int {
		return strings.Compare(a.group+" "+a.resource, b.group+" "+b.resource)
	}) {
		a := q.asked[n]
		own := a.own()
		if len(own) > maxForms {
			q.warnings = append(q.warnings, Warning{Message: fmt.Sprintf("policies confined to namespaces say more than %d different things about %s: they share the strictest failure setting and the longest timeout", maxForms, n)})
			own = a.shared(own)
		}
		differing, most := 0, 0
		for _, p := range own {
			differing, most = differing+len(p.namespaces), max(most, len(p.namespaces))
		}
		needed := differing
		if a.everywhere != nil {
			needed, most = 2*differing, differing
		}
		if most > maxNamespaces || needed > names || len(own) > parts {
			q.warnings = append(q.warnings, Warning{Message: fmt.Sprintf("policies confined to namespaces speak of %s in %d of them, which is more than selectors can name (%d, %d in all): their failure setting and timeout count in all namespaces", n, differing, maxNamespaces, maxNames)})
			all = append(all, q.told(a.everywhereAll()))
			continue
		}
		names, parts = names-needed, parts-len(own)
		for _, p := range own {
			all = append(all, q.told(p))
		}
		if a.everywhere != nil {
			all = append(all, q.told(part{question: a, form: a.form(a.everywhere), namespaces: allNamespaces(own), except: true}))
		}
	}
	return all
}

// own returns, by their forms, the namespaces in which another one holds than
// everywhere.
func (a *question) own() []part {
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
			parts = append(parts, part{question: a, form: f})
		}
		parts[i].namespaces = append(parts[i].namespaces, namespace)
	}
	return parts
}

// shared makes one part of several.
func (a *question) shared(own []part) []part {
	said := a.everywhere
	namespaces := allNamespaces(own)
	for _, namespace := range namespaces {
		said = a.within[namespace].and(said)
	}
	return []part{{question: a, form: a.form(said), namespaces: namespaces}}
}

// everywhereAll is what all policies say, for all namespaces.
func (a *question) everywhereAll() part {
	said := a.everywhere
	for _, namespace := range slices.Sorted(maps.Keys(a.within)) {
		said = a.within[namespace].and(said)
	}
	return part{question: a, form: a.form(said), except: true}
}

func allNamespaces(parts []part) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.namespaces...)
	}
	slices.Sort(all)
	return all
}

// told warns who names versions of a part that are not the only ones.
func (q *questions) told(p part) part {
	if p.form.parts {
		for id := range p.narrow {
			q.warnings = append(q.warnings, Warning{Policy: id, Message: fmt.Sprintf(
				"%s: no version is named by all policies that speak of it, so the API server asks in %s, and this policy is not asked about objects that come in one which it does not name: name the same version in all of them, or none",
				p.name, p.form.versions)})
		}
	}
	return p
}

// String returns the resource and its group, as in tasks.tekton.dev.
func (n name) String() string {
	if n.group == "" {
		return n.resource
	}
	return n.resource + "." + n.group
}

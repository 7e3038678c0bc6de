package configuration

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
)

// split moves CREATE from webhooks with a condition into otherwise equal ones without it. The API
// server copies the object to evaluate a condition, and this one is true for every CREATE. Webhooks
// for namespaces are split while maxNames and maxParts allow it; an unsplit one is equivalent and
// only costs the API server more.
func (q *requirements) split(whole []*group) []*group {
	names, webhooks := q.bounds()
	for _, g := range whole {
		if len(g.namespaces) > 0 {
			names, webhooks = names-len(g.namespaces), webhooks-1
		}
	}
	var all []*group
	for _, g := range whole {
		created, updated := g.created(), g.updated()
		switch {
		case !g.Spec:
			all = append(all, g)
		case len(created.parts) == 0:
			all = append(all, updated)
		case len(updated.parts) == 0:
			all = append(all, created)
		case len(g.namespaces) == 0:
			all = append(all, created, updated)
		case len(g.namespaces) > names || webhooks < 1:
			all = append(all, g)
		default:
			names, webhooks = names-len(g.namespaces), webhooks-1
			all = append(all, created, updated)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// created returns the webhook for CREATE with the parts of g.
func (g *group) created() *group {
	created := g.only(admission.Create)
	created.Spec = false
	return created
}

// updated returns the webhook for UPDATE with the parts of g.
func (g *group) updated() *group {
	updated := g.only(admission.Update)
	updated.name += "-updates"
	return updated
}

// only returns g for one operation, with those parts that have it.
func (g *group) only(operation admission.OperationType) *group {
	narrowed := *g
	narrowed.parts = nil
	for _, p := range g.parts {
		if slices.Contains(strings.Split(p.form.operations, ","), string(operation)) {
			p.form.operations = string(operation)
			narrowed.parts = append(narrowed.parts, p)
		}
	}
	return &narrowed
}

func byName(a, b *group) int { return strings.Compare(a.name, b.name) }

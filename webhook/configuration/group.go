package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/webhook/configuration/naming"
)

// group is the parts that share a webhook.
type group struct {
	naming.Class
	name       string
	namespaces []string // see part
	parts      []part
}

func (p part) class() naming.Class {
	return naming.Class{
		Closed: p.form.closed, Seconds: p.form.seconds, Spec: p.form.spec, Labelled: p.form.labelled, Itself: p.itself(),
		Others: p.form.others, Record: p.form.record, Except: p.except,
	}
}

// groups assigns parts to webhooks, and each operation to one webhook.
func (q *requirements) groups(parts []part) []*group {
	type key struct {
		naming.Class
		namespaces string
	}
	var order []*group
	found := make(map[key]*group)
	for _, p := range parts {
		k := key{p.class(), strings.Join(p.namespaces, " ")}
		if found[k] == nil {
			found[k] = &group{Class: k.Class, namespaces: p.namespaces}
			order = append(order, found[k])
		}
		found[k].parts = append(found[k].parts, p)
	}
	taken := make(map[string]bool)
	for _, g := range order {
		g.name = q.nameOf(g, taken)
		taken[g.name] = true
	}
	return q.split(slices.SortedFunc(maps.Values(found), byName))
}

// nameOf returns a name that no other group has. Webhooks for single namespaces are told apart by
// their first resource and its form, which no other webhook of their class has, and not by their
// namespaces, which change with each policy.
func (q *requirements) nameOf(g *group, taken map[string]bool) string {
	name := g.Name(q.phase == shadowPhase, naming.Usual{Objects: defaultSeconds, Records: recordSeconds, Shadow: shadowSeconds})
	switch {
	case !g.Except:
		return naming.Apart(name+"-own", fmt.Sprintf("%s %+v", g.parts[0].name, g.parts[0].form), taken)
	case g.Itself || slices.Equal(g.namespaces, q.apart):
		return name
	case len(g.namespaces) == 0:
		return name + "-all"
	}
	return naming.Apart(name+"-not", strings.Join(g.namespaces, " "), taken)
}

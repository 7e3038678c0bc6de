package sampling

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
)

// Now is the time of all requests, so that one seed makes the same run.
func Now() time.Time { return time.Date(2030, 1, 15, 12, 0, 0, 0, time.UTC) }

// lookup is an object or a list that policies read besides the object of the request.
type lookup struct {
	facts.Lookup
	kind kind
}

// lookupsOf finds the kinds of look-ups.
func lookupsOf(all []facts.Lookup, home string) (found []lookup) {
	for _, of := range all {
		i := slices.IndexFunc(constraint.Known(), func(r constraint.Resource) bool {
			return r.Group == of.Group && (r.Kind == of.Kind || of.Kind == "" && strings.EqualFold(r.Name, of.Resource))
		})
		r := constraint.Resource{Name: of.Resource, Group: of.Group, Kind: of.Kind}
		switch {
		case i >= 0:
			r = constraint.Known()[i]
		case of.Kind == "": // a resource of a kind that is not built in
			r.Kind = strings.ToUpper(of.Resource[:1]) + strings.TrimSuffix(of.Resource[1:], "s")
		default:
			r.Name = constraint.NameOf(of.Kind)
		}
		found = append(found, lookup{of, kind{group: of.Group, version: of.Version, name: r.Kind, resource: r.Name, cluster: r.Cluster, home: home}})
	}
	return found
}

// addLooked keeps a path in the objects of a look-up: the elements of a list are objects.
func (g *Generator) addLooked(p facts.Path, near []any, shape facts.Shape) {
	key, rest := p[0], withinItems(p[1:])
	if len(rest) == 0 || rest[0] == "items" || rest[0] == facts.Each {
		return
	}
	if g.looked == nil {
		g.looked = map[string][]place{}
	}
	g.looked[key] = append(g.looked[key], place{rest, near, shape})
}

// withinItems is a path in an element, for one in a list of objects.
func withinItems(p facts.Path) facts.Path {
	if len(p) > 1 && p[0] == "items" && p[1] == facts.Each {
		return p[2:]
	}
	return p
}

// Looks reports whether the policies read other objects than that of the request.
func (g *Generator) Looks() bool { return len(g.lookups) > 0 }

// World draws the objects that exist besides that of a request: for each look-up none, one or two.
func (g *Generator) World() []map[string]any {
	g.world = nil
	for i := range g.lookups {
		of := &g.lookups[i]
		count := min(g.from.IntN(6), 2)
		if of.Name != "" {
			count = min(count, 1)
		}
		for n := range count {
			if object := g.existing(of, n); object != nil {
				g.world = append(g.world, object)
			}
		}
	}
	return g.world
}

// existing draws an object of a look-up; nil for one that no API server has.
func (g *Generator) existing(of *lookup, n int) map[string]any {
	root := of.kind.base()
	within := facts.Path{}
	if of.IsImageData() {
		root["data"] = facts.ImageDataWith(nil, Now())
		within = facts.Path{"data"}
	}
	for range 1 + g.from.IntN(3) {
		own := g.looked[of.Key]
		var at facts.Path
		var value any
		switch {
		case len(own) > 0 && g.from.IntN(4) > 0:
			p := own[g.from.IntN(len(own))]
			at, value = append(within, p.path...), g.drawn(p.near)
			if of.IsImageData() && (!p.shape.Takes(value) || !p.path.TakesInImage(value)) {
				continue
			}
		case len(g.paths) > 0 && !of.IsImageData():
			p := g.from.IntN(len(g.paths))
			at, value = g.paths[p], g.drawn(g.around[p].near)
		default:
			continue
		}
		if of.kind.name == "ConfigMap" && at[0] == "data" {
			value = g.text(value)
		}
		tree.Set(root, at, value, func(int) bool { return true })
	}
	complete(root, &of.kind)
	meta, _ := root["metadata"].(map[string]any)
	switch {
	case of.Name != "":
		meta["name"] = of.Name
	case n > 0:
		meta["name"] = fmt.Sprint(meta["name"], n)
	}
	if !of.kind.cluster && (of.Namespace != "" || g.from.IntN(4) == 0) {
		meta["namespace"] = of.Namespace
		if of.Namespace == "" {
			meta["namespace"] = g.namespaces[g.from.IntN(len(g.namespaces))]
		}
	}
	if _, err := Object(root); err != nil {
		return nil
	}
	return root
}

// drawn is a value next to a path, or any.
func (g *Generator) drawn(near []any) any {
	if len(near) > 0 && g.from.IntN(4) > 0 {
		return near[g.from.IntN(len(near))]
	}
	return g.values[g.from.IntN(len(g.values))]
}

// text is a value as the text of a ConfigMap, which may hold a list in JSON.
func (g *Generator) text(value any) any {
	if _, isAbsent := value.(facts.Absent); isAbsent {
		return value
	}
	if text, ok := value.(string); ok && g.from.IntN(2) == 0 {
		return text
	}
	if g.from.IntN(2) == 0 {
		value = []any{value}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

var wordForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// images are references with the texts that policies compare in each of their parts.
func images(values []any) (all []any) {
	all = []any{"web", "web:latest", "registry.example/web@sha256:" + strings.Repeat("0", 64), "registry.example:5000/team/web:v1"}
	for _, value := range values {
		text, _ := value.(string)
		text = strings.Trim(text, "*/:@!")
		if len(all) < maxImages && len(text) < 100 && wordForm.MatchString(text) {
			all = append(all, text+"/web:v1", "registry.example/"+text+":v1", "registry.example/web:"+text)
		}
	}
	return all
}

// maxImages bounds the references.
const maxImages = 200

// times are moments around the durations that policies compare with the age of an object.
func times(values []any) (all []any) {
	for _, value := range values {
		text, _ := value.(string)
		for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`"'()<>= `, r) }) {
			long, err := time.ParseDuration(part)
			if err != nil || long == 0 || len(all) >= maxImages {
				continue
			}
			for _, by := range []time.Duration{-time.Second, 0, time.Second} {
				all = append(all, Now().Add(by-long).Format(time.RFC3339), Now().Add(long+by).Format(time.RFC3339))
			}
		}
	}
	return all
}

// resourceOf finds the resource of a kind, and whether it is in no namespace.
func resourceOf(group, kind string) (name string, isCluster bool) {
	for _, r := range constraint.Known() {
		if r.Group == group && r.Kind == kind {
			return r.Name, r.Cluster
		}
	}
	return constraint.NameOf(kind), false
}

package mapping

import (
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// Index finds values by host and path prefix with look-ups instead of a scan. The zero Index is
// empty.
type Index[T any] struct {
	hosts   map[string]prefixes[T]
	endings map[string]prefixes[T] // by a host's end, from a dot on; "" for any
	// others: there are values at registries with other names.
	others bool
}

type prefixes[T any] map[string][]T

// add adds a value under a host, or under a host's end if host is wild.
func (x *Index[T]) add(host affix, prefix string, value T) {
	if x.hosts == nil {
		x.hosts, x.endings = map[string]prefixes[T]{}, map[string]prefixes[T]{}
	}
	table, key := x.hosts, host.before
	if host.wild {
		table, key = x.endings, ""
		if i := strings.IndexByte(host.after, '.'); i >= 0 {
			key = host.after[i:]
		}
	}
	if table[key] == nil {
		table[key] = prefixes[T]{}
	}
	table[key][prefix] = append(table[key][prefix], value)
	x.others = x.others || hasOtherNames(host)
}

// Visit calls yield for the values that may match a name, or another name of its repository, with
// that name; the most specific first: a whole host before an end, an end of more components before
// one of fewer, the name as written before others, then a longer prefix before a shorter; last in
// the order of adding. It stops when yield returns false.
func (x *Index[T]) Visit(name image.Repository, yield func(value T, name image.Repository) bool) {
	var others []image.Repository
	if x.others {
		others = name.OtherNames()
	}
	if !x.hosts[name.Registry()].visit(name, yield) {
		return
	}
	dots := strings.Count(name.Registry(), ".")
	for _, other := range others {
		if !x.hosts[other.Registry()].visit(other, yield) {
			return
		}
		dots = max(dots, strings.Count(other.Registry(), "."))
	}
	for ; len(x.endings) > 0 && dots >= 0; dots-- {
		if !x.visitEnding(dots, name, yield) {
			return
		}
		for _, other := range others {
			if !x.visitEnding(dots, other, yield) {
				return
			}
		}
	}
}

// visitEnding visits the end of a host with a number of dots, which is "" for none.
func (x *Index[T]) visitEnding(dots int, name image.Repository, yield func(T, image.Repository) bool) bool {
	host := name.Registry()
	start := len(host)
	for range dots {
		start = strings.LastIndexByte(host[:start], '.')
		if start < 0 {
			return true
		}
	}
	return x.endings[host[start:]].visit(name, yield)
}

func (p prefixes[T]) visit(name image.Repository, yield func(T, image.Repository) bool) bool {
	if p == nil {
		return true
	}
	path := name.Path()
	for {
		for _, value := range p[path] {
			if !yield(value, name) {
				return false
			}
		}
		if path == "" {
			return true
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
}

// AddSource adds a value under the names of a source.
func (x *Index[T]) AddSource(s Source, value T) {
	host := affix{before: s.host}
	if s.host == "" {
		host = affix{after: s.suffix, wild: true}
	}
	x.add(host, s.prefix, value)
}

// AddTarget adds a value under the target names of a mapping.
func (x *Index[T]) AddTarget(m *Mapping, value T) { x.add(m.host, m.leading(), value) }

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
	// others: there are targets at registries with other names.
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
}

// Visit calls yield for the values that may match a name, the most specific first: a whole host
// before an end, a longer end before a shorter, then a longer prefix before a shorter; last in
// the order of adding. It stops when yield returns false.
func (x *Index[T]) Visit(host, path string, yield func(T) bool) {
	if !x.hosts[host].visit(path, yield) {
		return
	}
	if len(x.endings) == 0 {
		return
	}
	for i := strings.IndexByte(host, '.'); i >= 0; {
		if !x.endings[host[i:]].visit(path, yield) {
			return
		}
		next := strings.IndexByte(host[i+1:], '.')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	x.endings[""].visit(path, yield)
}

func (p prefixes[T]) visit(path string, yield func(T) bool) bool {
	if p == nil {
		return true
	}
	for {
		for _, value := range p[path] {
			if !yield(value) {
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
func (x *Index[T]) AddTarget(m *Mapping, value T) {
	x.add(m.host, m.leading(), value)
	x.others = x.others || hasOtherNames(m.host)
}

// VisitCopies calls yield for the values with a possible target name, and the host for the
// inverse: as written, and under each other name of its registry.
func (x *Index[T]) VisitCopies(copied image.Repository, yield func(value T, host string) bool) {
	host, more := copied.Registry(), true
	each := func(value T) bool {
		more = yield(value, host)
		return more
	}
	x.Visit(host, copied.Path(), each)
	if !more || !x.others {
		return
	}
	for _, other := range image.OtherRegistries(copied.Registry()) {
		host = other
		if more {
			x.Visit(host, copied.Path(), each)
		}
	}
}

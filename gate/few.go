package gate

import (
	"iter"
	"maps"
)

// maxFew is up to how many entries a few is a list.
const maxFew = 16

// few is a map optimized for one or two entries, the usual number for the images of one
// object. Entries are kept in a list until there are many: a Go map allocates space for
// eight entries, and these keys are long. The zero value is empty.
type few[K comparable, V any] struct {
	list []entry[K, V]
	many map[K]V // instead of the list, once it is full
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// get returns the value of a key, and whether there is one.
func (f *few[K, V]) get(key K) (V, bool) {
	for i := range f.list {
		if f.list[i].key == key {
			return f.list[i].value, true
		}
	}
	value, ok := f.many[key]
	return value, ok
}

func (f *few[K, V]) set(key K, value V) {
	if f.many != nil {
		f.many[key] = value
		return
	}
	for i := range f.list {
		if f.list[i].key == key {
			f.list[i].value = value
			return
		}
	}
	if len(f.list) < maxFew {
		f.list = append(f.list, entry[K, V]{key, value})
		return
	}
	f.many = make(map[K]V, 2*maxFew)
	for _, e := range f.list {
		f.many[e.key] = e.value
	}
	f.many[key], f.list = value, nil
}

// all returns the entries, in no order. Those that are there may be set meanwhile.
func (f *few[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, e := range f.list {
			if !yield(e.key, e.value) {
				return
			}
		}
		for key, value := range f.many {
			if !yield(key, value) {
				return
			}
		}
	}
}

// drop removes the matching entries.
func (f *few[K, V]) drop(is func(K, V) bool) {
	kept := f.list[:0]
	for _, e := range f.list {
		if !is(e.key, e.value) {
			kept = append(kept, e)
		}
	}
	clear(f.list[len(kept):])
	f.list = kept
	maps.DeleteFunc(f.many, is)
}

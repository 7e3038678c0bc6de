package background

import (
	"maps"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/policy/generating/record"
)

// kept is an object that is there because of a rule.
type kept struct {
	at     key
	kind   Kind
	origin record.Origin
	// wanted is what the rule wanted when the object was last known to be right, and is
	// what it was then.
	wanted, is sum
	// others are triggers that want the very same object, and known is how many of them
	// were there when that was looked at last.
	others map[key]record.Trigger
	known  int
}

// fewHeirs is how many others are kept without a look whether they are there still.
const fewHeirs = 64

// downstreams are the objects that are there because of rules, as their watches tell.
type downstreams struct {
	mu        sync.Mutex
	objects   map[key]*kept
	byTrigger map[key]map[key]bool
}

func newDownstreams() *downstreams {
	return &downstreams{objects: map[key]*kept{}, byTrigger: map[key]map[key]bool{}}
}

// put notes why an object is there.
func (d *downstreams) put(at key, kind Kind, origin record.Origin) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	switch {
	case k == nil:
		k = &kept{at: at}
		d.objects[at] = k
	case k.origin.Trigger != origin.Trigger:
		d.unlink(k)
	}
	k.kind, k.origin = kind, origin
	trigger := keyOf(origin.Trigger)
	if d.byTrigger[trigger] == nil {
		d.byTrigger[trigger] = map[key]bool{}
	}
	d.byTrigger[trigger][at] = true
}

// unlink forgets the trigger; the caller holds the lock.
func (d *downstreams) unlink(k *kept) {
	trigger := keyOf(k.origin.Trigger)
	delete(d.byTrigger[trigger], k.at)
	if len(d.byTrigger[trigger]) == 0 {
		delete(d.byTrigger, trigger)
	}
}

// right notes that an object is as a rule wants it.
func (d *downstreams) right(at key, wanted, is sum) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.objects[at]; k != nil {
		k.wanted, k.is = wanted, is
	}
}

// isRight reports whether an object is as a rule wants it, as far as is known.
func (d *downstreams) isRight(at key, wanted, is sum) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	return k != nil && k.wanted == wanted && k.is == is
}

// wants notes that another trigger wants an object, too.
func (d *downstreams) wants(at key, other record.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return
	}
	if k.others == nil {
		k.others = map[key]record.Trigger{}
	}
	k.others[keyOf(other)] = other
}

// crowd returns the other triggers that want an object, where they have become twice as
// many as were there: some have gone since, of which nobody tells.
func (d *downstreams) crowd(at key) []record.Trigger {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil || len(k.others) < max(fewHeirs, 2*k.known) {
		return nil
	}
	k.known = len(k.others)
	return slices.Collect(maps.Values(k.others))
}

// thin forgets those that are gone of the others that want an object.
func (d *downstreams) thin(at key, gone []record.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return
	}
	for _, trigger := range gone {
		if k.others[keyOf(trigger)] == trigger {
			delete(k.others, keyOf(trigger))
		}
	}
	k.known = len(k.others)
}

// heirs returns the other triggers that want an object, and forgets them.
func (d *downstreams) heirs(at key) []record.Trigger {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []record.Trigger
	if k := d.objects[at]; k != nil {
		for _, other := range k.others {
			list = append(list, other)
		}
		k.others = nil
	}
	return list
}

// get returns one; false if there is none.
func (d *downstreams) get(at key) (kept, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return kept{}, false
	}
	return *k, true
}

// remove forgets one and returns it; false if there was none.
func (d *downstreams) remove(at key) (kept, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return kept{}, false
	}
	d.unlink(k)
	delete(d.objects, at)
	return *k, true
}

// of returns those that are there because of a trigger.
func (d *downstreams) of(trigger key) []kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []kept
	for at := range d.byTrigger[trigger] {
		list = append(list, *d.objects[at])
	}
	return list
}

// has reports whether there are any because of a trigger.
func (d *downstreams) has(trigger key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byTrigger[trigger]) > 0
}

// all returns those of which is says so.
func (d *downstreams) all(is func(*kept) bool) []kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []kept
	for _, k := range d.objects {
		if is(k) {
			list = append(list, *k)
		}
	}
	return list
}

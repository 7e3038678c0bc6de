package background

import (
	"maps"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// kept is a generated object.
type kept struct {
	at     queue.Key
	kind   Kind
	origin record.Origin
	// wanted is the hash of the object that the rule required when it was last up to date, and is
	// the hash of the stored object at that time.
	wanted, is inspect.Sum
	// others are further triggers that require the identical object, and known is their number at
	// the last check of their existence.
	others map[queue.Key]record.Trigger
	known  int
}

// minCheckedTriggers is the number of other triggers from which on their existence is checked.
const minCheckedTriggers = 64

// downstreams are the generated objects, from their watches.
type downstreams struct {
	mu        sync.Mutex
	objects   map[queue.Key]*kept
	byTrigger map[queue.Key]map[queue.Key]bool
}

func newDownstreams() *downstreams {
	return &downstreams{objects: map[queue.Key]*kept{}, byTrigger: map[queue.Key]map[queue.Key]bool{}}
}

// put records the origin of an object.
func (d *downstreams) put(at queue.Key, kind Kind, origin record.Origin) {
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
	trigger := queue.KeyOf(origin.Trigger)
	if d.byTrigger[trigger] == nil {
		d.byTrigger[trigger] = map[queue.Key]bool{}
	}
	d.byTrigger[trigger][at] = true
}

// unlink removes the trigger; the caller holds the lock.
func (d *downstreams) unlink(k *kept) {
	trigger := queue.KeyOf(k.origin.Trigger)
	delete(d.byTrigger[trigger], k.at)
	if len(d.byTrigger[trigger]) == 0 {
		delete(d.byTrigger, trigger)
	}
}

// setUpToDate records that an object is as a rule requires it.
func (d *downstreams) setUpToDate(at queue.Key, wanted, is inspect.Sum) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.objects[at]; k != nil {
		k.wanted, k.is = wanted, is
	}
}

// isUpToDate reports whether an object is as a rule requires it, as far as recorded.
func (d *downstreams) isUpToDate(at queue.Key, wanted, is inspect.Sum) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	return k != nil && k.wanted == wanted && k.is == is
}

// addTrigger records another trigger that requires an object.
func (d *downstreams) addTrigger(at queue.Key, other record.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return
	}
	if k.others == nil {
		k.others = map[queue.Key]record.Trigger{}
	}
	k.others[queue.KeyOf(other)] = other
}

// triggersToCheck returns the other triggers of an object if their number has doubled since the last
// check: their deletion is not observed.
func (d *downstreams) triggersToCheck(at queue.Key) []record.Trigger {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil || len(k.others) < max(minCheckedTriggers, 2*k.known) {
		return nil
	}
	k.known = len(k.others)
	return slices.Collect(maps.Values(k.others))
}

// removeTriggers removes deleted triggers from the others of an object.
func (d *downstreams) removeTriggers(at queue.Key, deleted []record.Trigger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return
	}
	for _, trigger := range deleted {
		if k.others[queue.KeyOf(trigger)] == trigger {
			delete(k.others, queue.KeyOf(trigger))
		}
	}
	k.known = len(k.others)
}

// takeOtherTriggers removes and returns the other triggers of an object.
func (d *downstreams) takeOtherTriggers(at queue.Key) []record.Trigger {
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

// get returns one object, and false if there is none.
func (d *downstreams) get(at queue.Key) (kept, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.objects[at]
	if k == nil {
		return kept{}, false
	}
	return *k, true
}

// remove removes and returns one object, and false if there was none.
func (d *downstreams) remove(at queue.Key) (kept, bool) {
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

// of returns the generated objects of a trigger.
func (d *downstreams) of(trigger queue.Key) []kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []kept
	for at := range d.byTrigger[trigger] {
		list = append(list, *d.objects[at])
	}
	return list
}

// has reports whether a trigger has generated objects.
func (d *downstreams) has(trigger queue.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byTrigger[trigger]) > 0
}

// all returns the objects for which is returns true.
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

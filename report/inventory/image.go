package inventory

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/state"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// entry is the data of one image.
type entry struct {
	image      Image // its state and counts are set by describe
	at         *list.Element
	in         *list.List // the list that contains at: Inventory.order, or unused until a workload runs the image
	references []string
	uses       map[place]*use
	leftOut    int // uses over the bound
	lost       int // running pods without a workload, over their bound, until a scan finds them
	states     state.States
	text       string // in lower case, for searches
}

// place is a workload.
type place struct{ apiVersion, kind, namespace, name string }

// use is an image's use by a workload.
type use struct {
	containers []string
	of         string           // apiVersion and kind of the pods, or of the object itself
	pods       map[uint64]int64 // the last time of each, in seconds, by the hash of its identity
	verdict    Verdict
	state      *state.State // nil where it does not run
	running    bool
	found      bool // by a scan
	process    report.Process
	seen       time.Time
	cause      *Cause // of the refusal; nil where the workload runs
}

// idOf returns the ID of an image, from its repository and digest, or without a digest from its
// reference.
func idOf(image *report.Image) string {
	text := image.Reference
	if !image.Digest.IsZero() {
		text = repositoryOf(image.Reference) + "@" + image.Digest.String()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// repositoryOf strips the tag and digest of a normalised reference.
func repositoryOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}

// placeOf returns the workload of an object and the identity of the pod in it. It returns false
// for an object without name and controller, such as a query for an image alone.
func placeOf(r report.Resource) (place, uint64, bool) {
	r = cutResource(r)
	pod := hashOf(cmp.Or(r.UID, r.Name))
	if o := r.Owner; o != nil {
		return place{o.APIVersion, o.Kind, r.Namespace, o.Name}, pod, true
	}
	return place{r.APIVersion, r.Kind, r.Namespace, r.Name}, pod, r.Name != ""
}

// see adds the images of a record. The caller holds the lock. A query outside a webhook reveals
// no running workload, and neither its location nor its verdict is recorded.
func (i *Inventory) see(o report.Occasion, r report.Record, about report.Resource) {
	at, pod, placed := placeOf(about)
	placed = placed && !o.OnlyAsked()
	running := o.Allowed || o.Process == report.ProcessScan
	now := use{of: about.APIVersion + " " + about.Kind, running: running, process: o.Process, seen: o.Time.UTC()}
	if !running {
		now.cause = causeOf(r)
	}
	current := map[*entry]bool{}
	for _, image := range gravestLast(r) {
		var was *entry
		if placed && isUnchanged(image) {
			was = i.runAs(at, cut(image.Reference, maxName))
		}
		if was != nil {
			was.uses[at].sees(pod, now)
			was.in.MoveToFront(was.at)
			was.image.LastSeen, current[was] = now.seen, true
			continue
		}
		resolve(i, image, at, placed && running, current)
		e := i.entryOf(image, o, at)
		e.name(image.Reference)
		current[e] = true
		evaluation := state.Evaluation{Occasion: o, Record: r, Image: image}
		keeps := o.OnlyAsked() && (e.runs() || e.image.Refused > 0) // a query does not replace a workload's state
		if !keeps && (!placed || !running) {
			i.change(e, func(s *state.States) { s.Ask(i.packer, evaluation) })
		}
		if placed {
			i.use(e, at, pod, evaluation, now)
		}
	}
	if placed {
		i.seeBarePod(o, at, about)
	}
	if placed && running {
		for e := range i.places[at] { // the object's earlier images
			if u := e.uses[at]; !current[e] && u.running {
				delete(u.pods, pod)
				if len(u.pods) == 0 {
					i.remove(e, at)
				}
				e.describe()
			}
		}
	}
	for e := range current {
		e.describe()
	}
}

// seeBarePod enforces the bounds on pods without a workload that only admission has seen. It evicts
// the oldest. The caller holds the lock.
func (i *Inventory) seeBarePod(o report.Occasion, at place, about report.Resource) {
	if o.Process == report.ProcessScan {
		i.barePods.drop(at)
		return
	}
	if about.Kind != "Pod" || about.Owner != nil || len(i.places[at]) == 0 {
		return
	}
	runs := false
	for e := range i.places[at] {
		if e.uses[at].found {
			return
		}
		runs = runs || e.uses[at].running
	}
	oldest, full := i.barePods.add(at, runs)
	if !full {
		return
	}
	for e := range i.places[oldest] {
		if u := e.uses[oldest]; u.running {
			e.lost++
			i.change(e, func(s *state.States) { s.Lose(u.state) })
			u.state = nil
		}
		i.remove(e, oldest)
		e.describe()
	}
}

// entryOf returns the entry of an image, and marks it as the most recently seen. A refused request
// to change an object has no digest of an image that no policy verifies then: it is the image that
// the object runs by the same name.
func (i *Inventory) entryOf(image *report.Image, o report.Occasion, of place) *entry {
	id, at := idOf(image), o.Time.UTC()
	e := i.images[id]
	if e == nil && image.Digest.IsZero() && !o.Allowed && o.Process != report.ProcessScan {
		e = i.runAs(of, cut(image.Reference, maxName))
	}
	if e == nil {
		e = &entry{image: Image{ID: id, FirstSeen: at, Digest: image.Digest.String()}, uses: map[place]*use{}, in: i.unused}
		if image.Digest.IsZero() {
			e.image.Digest = ""
		}
		i.images[id], e.at = e, e.in.PushFront(e)
	}
	e.in.MoveToFront(e.at)
	e.image.LastSeen = at
	return e
}

// isUnchanged reports whether an update does not concern the image, which was not evaluated again.
func isUnchanged(image *report.Image) bool {
	return image.Digest.IsZero() && len(image.Reasons) > 0 && image.Reasons[0].Code == policy.Unchanged
}

// sees records a pod of the workload, if it runs.
func (u *use) sees(pod uint64, now use) {
	if _, known := u.pods[pod]; now.running && (known || len(u.pods) < maxPods) {
		u.seen, u.pods[pod] = now.seen, now.seen.Unix()
	}
}

// runAs returns the image that a workload runs by a reference; nil for none.
func (i *Inventory) runAs(at place, reference string) *entry {
	for e := range i.places[at] {
		if e.uses[at].running && slices.Contains(e.references, reference) {
			return e
		}
	}
	return nil
}

// runs reports whether a known workload runs the image.
func (e *entry) runs() bool { return e.image.Workloads > 0 || e.lost > 0 }

// use records that a workload uses the image.
func (i *Inventory) use(e *entry, at place, pod uint64, of state.Evaluation, now use) {
	u := e.uses[at]
	now.verdict = verdict.OfImage(of.Image)
	if u == nil {
		if len(e.uses) == maxUses {
			e.leftOut++
			least, ok := e.lighter(now.running, now.verdict)
			if !ok {
				return
			}
			i.remove(e, least)
		}
		u = &use{of: now.of, pods: map[uint64]int64{}}
		e.uses[at] = u
		i.uses++
		if i.places[at] == nil {
			i.places[at] = map[*entry]struct{}{}
		}
		i.places[at][e] = struct{}{}
	}
	if !now.running && u.running {
		return // other pods of the workload run; the decision on this one is recorded separately
	}
	if now.running && e.in != i.order {
		e.in.Remove(e.at)
		e.in, e.at = i.order, i.order.PushFront(e)
	}
	if now.running {
		i.change(e, func(s *state.States) { u.state = s.Run(i.packer, u.state, of) })
	}
	u.found = u.found || now.process == report.ProcessScan
	u.verdict, u.running, u.process, u.seen, u.cause = now.verdict, now.running, now.process, now.seen, now.cause
	if name := cut(of.Image.Container, maxName); name != "" && len(u.containers) < maxContainers && !slices.Contains(u.containers, name) {
		u.containers = append(u.containers, name)
	}
	u.sees(pod, now)
}

// clear removes the objects of a kind that a scan did not find. If decisions of the scan were
// dropped, it removes nothing, since the result is incomplete.
func (i *Inventory) clear(p pass) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if dropped := i.dropped.Load(); dropped != i.droppedAtScan {
		i.droppedAtScan = dropped
		return
	}
	for _, e := range i.images {
		if p.apiVersion+" "+p.kind == "v1 Pod" {
			e.lost = 0 // the scan has found them
			i.change(e, (*state.States).Found)
		}
		for at, u := range e.uses {
			if u.of != p.apiVersion+" "+p.kind || !u.running || p.leftOut(at.namespace) {
				continue
			}
			for pod, seen := range u.pods {
				if seen < p.began.Unix() {
					delete(u.pods, pod)
				}
			}
			if len(u.pods) == 0 && u.seen.Before(p.began) {
				i.remove(e, at)
			}
		}
		e.describe()
		if len(e.uses) == 0 && e.in == i.order && e.lost == 0 {
			i.drop(e)
		}
	}
}

// remove removes a workload's use of the image.
func (i *Inventory) remove(e *entry, at place) {
	u, ok := e.uses[at]
	if !ok {
		return
	}
	i.change(e, func(s *state.States) { s.Leave(u.state) })
	delete(e.uses, at)
	i.uses--
	delete(i.places[at], e)
	if len(i.places[at]) == 0 {
		delete(i.places, at)
		i.barePods.drop(at)
	}
}

// drop evicts an image; nil is ignored.
func (i *Inventory) drop(e *entry) {
	if e == nil {
		return
	}
	for at := range e.uses {
		i.remove(e, at)
	}
	i.evidence -= e.states.Size()
	e.in.Remove(e.at)
	delete(i.images, e.image.ID)
}

// evict enforces the bounds. Images that no workload ran are evicted first, since requests for
// them are free, and then the least recently seen.
func (i *Inventory) evict(now time.Time) {
	full := func() bool {
		return len(i.images) > MaxImages || i.uses > maxAllUses || i.evidence > maxAllEvidence
	}
	for _, order := range []*list.List{i.unused, i.order} {
		for oldest := order.Back(); oldest != nil; oldest = order.Back() {
			e, _ := oldest.Value.(*entry)
			if !full() && now.Sub(e.image.LastSeen) <= Keep {
				break
			}
			i.drop(e)
		}
	}
	if now.Sub(i.swept) < time.Hour {
		return
	}
	i.swept = now
	i.policies.Evict(now, Keep)
	for _, e := range i.images {
		for at, u := range e.uses {
			if now.Sub(u.seen) > Keep {
				i.remove(e, at)
			}
		}
		e.describe()
	}
}

// describe computes the counts and the text for searches.
func (e *entry) describe() {
	e.image.Workloads, e.image.Pods, e.image.Refused, e.image.Cause = 0, 0, 0, nil
	namespaces := map[string]struct{}{}
	latest := time.Time{} // of the refusals
	var text strings.Builder
	for _, each := range append([]string{e.image.Digest}, e.references...) {
		text.WriteString(each + "\n")
	}
	for at, u := range e.uses {
		text.WriteString(at.namespace + "/" + at.name + "\n")
		if at.namespace != "" {
			namespaces[at.namespace] = struct{}{}
		}
		if !u.running {
			e.image.Refused++
			if !u.seen.Before(latest) {
				latest, e.image.Cause = u.seen, u.cause
			}
			continue
		}
		e.image.Workloads++
		e.image.Pods += len(u.pods)
	}
	e.describeState()
	for _, s := range e.image.Signers {
		text.WriteString(s.Name + "\n")
	}
	e.text = strings.ToLower(text.String())
	e.image.NamespaceCount = len(namespaces)
	e.image.Namespaces = firstOf(namespaces, 5)
}

// firstOf returns the first n of the names, in order.
func firstOf(names map[string]struct{}, n int) []string {
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted[:min(n, len(sorted))]
}

// hashOf returns a compact identity of a pod within its workload.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum64()
}

package dryrun

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// place names a workload.
type place struct{ kind, namespace, name string }

// sort is the result of a workload, the worst last.
type sort int

const (
	runs sort = iota
	unlooked
	stopped
)

// tally is the scan.Decider of a dry run: it evaluates, and counts the outcomes. It is its
// scan.Observer as well.
type tally struct {
	decider, former scan.Decider
	within          map[string]bool // nil: all namespaces
	most            int
	enough          context.CancelCauseFunc

	mu      sync.Mutex
	objects int
	seen    map[place]sort
	found   Result
}

// errEnough ends a dry run at its bound.
var errEnough = errors.New("there are more, and it has a bound")

// DecideAll implements scan.Decider.
func (t *tally) DecideAll(ctx context.Context, requests []gate.Request, _ func(done, total int)) []gate.Outcome {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r gate.Request) bool {
		return isOver(r.Object) || t.within != nil && !t.within[r.Object.Namespace()]
	})
	if len(requests) == 0 {
		return nil
	}
	outcomes := t.decider.DecideAll(ctx, requests, nil)
	var denied []int
	for i := range outcomes {
		if sortOf(&outcomes[i]) == stopped {
			denied = append(denied, i)
		}
	}
	t.forgive(ctx, requests, outcomes, denied)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range outcomes {
		t.note(&outcomes[i], ctx.Err() != nil)
	}
	t.objects += len(requests)
	if t.most > 0 && t.objects >= t.most {
		t.enough(errEnough)
	}
	return nil
}

// forgive removes objects that the previous version denies, too.
func (t *tally) forgive(ctx context.Context, requests []gate.Request, outcomes []gate.Outcome, denied []int) {
	if len(denied) == 0 {
		return
	}
	again := make([]gate.Request, len(denied))
	for i, at := range denied {
		again[i] = requests[at]
	}
	for i, before := range t.former.DecideAll(ctx, again, nil) {
		if sortOf(&before) == stopped {
			outcomes[denied[i]].Result = gate.Allow
			outcomes[denied[i]].Reasons, outcomes[denied[i]].Verdicts = nil, nil
		}
	}
}

// note counts an outcome; cut: an indeterminate result may be due to a timeout.
func (t *tally) note(o *gate.Outcome, cut bool) {
	is := sortOf(o)
	if is == unlooked && cut {
		return
	}
	at := workloadOf(report.ResourceOf(*o), o.Object)
	before, known := t.seen[at]
	if known && before >= is || !known && len(t.seen) >= maxWorkloads {
		return
	}
	t.seen[at] = is
	if !known {
		t.found.Workloads++
	}
	if known && before == unlooked {
		t.found.UnlookedCount--
		t.found.Unlooked = slices.DeleteFunc(t.found.Unlooked, func(f Found) bool { return (place{f.Kind, f.Namespace, f.Name}) == at })
	}
	list, count := &t.found.Unlooked, &t.found.UnlookedCount
	switch is {
	case runs:
		return
	case stopped:
		list, count = &t.found.Stopped, &t.found.StoppedCount
	case unlooked:
	}
	*count++
	if len(*list) < MaxFound {
		*list = append(*list, foundOf(at, o))
	}
}

func foundOf(at place, o *gate.Outcome) Found {
	f := Found{Kind: at.kind, Namespace: at.namespace, Name: at.name}
	take := func(reasons []policy.Reason) bool {
		if len(reasons) == 0 {
			return false
		}
		f.Code, f.Message = reasons[0].Code, short(reasons[0].Message)
		return true
	}
	for i := range o.Verdicts {
		if v := &o.Verdicts[i]; v.Result == o.Result && take(v.Reasons) {
			f.Image = v.Image.Ref.Written()
			return f
		}
	}
	take(o.Reasons)
	return f
}

// sortOf returns the result of an object. An evaluation error that the policy or the object
// causes is permanent, and counts as a denial.
func sortOf(o *gate.Outcome) sort {
	switch {
	case o.Result.Admits() || o.Result == "":
		return runs
	case o.Result == gate.Deny || isFault(o):
		return stopped
	}
	return unlooked
}

func isFault(o *gate.Outcome) bool {
	is := func(r policy.Reason) bool { return r.Code == policy.PolicyError || r.Code == policy.Malformed }
	return slices.ContainsFunc(o.Reasons, is) || slices.ContainsFunc(o.Verdicts, func(v gate.Verdict) bool { return slices.ContainsFunc(v.Reasons, is) })
}

// result returns the result; err is the reason for an early end.
func (t *tally) result(err error) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.found
	r.Whole = err == nil
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.Why = "there was no time for more"
	case err != nil:
		r.Why = short(err.Error())
	}
	for _, list := range []*[]Found{&r.Stopped, &r.Unlooked} {
		*list = slices.SortedFunc(slices.Values(*list), func(a, b Found) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
	}
	return r
}

// Began, Ended, Looked and Failed implement scan.Observer.
func (t *tally) Began(scan.Position) {}

// Ended implements scan.Observer.
func (t *tally) Ended(scan.Summary, error) {}

// Looked implements scan.Observer.
func (t *tally) Looked(scan.Kind, int, int64) {}

// Failed implements scan.Observer.
func (t *tally) Failed(error) {}

// Refused implements scan.Observer.
func (t *tally) Refused(kind scan.Kind, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.found.Refused) < maxRefused {
		t.found.Refused = append(t.found.Refused, kind.Resource)
	}
}

func short(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " ..."
	}
	return text
}

// isOver reports whether an object is a pod or a job that has ended.
func isOver(object workload.Object) bool {
	status := object.Root().Member("status")
	switch object.Kind() {
	case "Pod":
		phase := status.Member("phase").Text()
		return phase == "Succeeded" || phase == "Failed"
	case "Job":
		return status.Member("completionTime").Text() != ""
	}
	return false
}

// hashLabel is a label on the pods of a Deployment's ReplicaSet; the ReplicaSet's name ends with
// its value.
const hashLabel = "pod-template-hash"

// workloadOf returns the workload of an object from the object's own metadata, without a lookup.
func workloadOf(of report.Resource, object workload.Object) place {
	owner := of.Owner
	if owner == nil || of.Kind != "Pod" && owner.Kind != "CronJob" && owner.Kind != "Deployment" {
		return place{of.Kind, of.Namespace, of.Name}
	}
	if hash := object.Root().Member("metadata").Member("labels").Member(hashLabel).Text(); owner.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
			return place{"Deployment", of.Namespace, name}
		}
	}
	return place{owner.Kind, of.Namespace, owner.Name}
}

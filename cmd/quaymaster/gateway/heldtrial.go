package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/held"
	"github.com/quaymaster/quaymaster/scan/trial"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

const (
	// trialTime bounds one evaluation by the leader, and tenantTrialTime one of a namespace's own
	// policy. A tenant may name images of registries that are slow on purpose, and other policies
	// wait for it.
	trialTime, tenantTrialTime = 10 * time.Minute, 3 * time.Minute
	// heldPause is the time between two evaluations of a policy that would deny running
	// workloads; unsurePause, of one with incomplete results.
	heldPause   = 5 * time.Minute
	unsurePause = time.Minute
	// maxUnsure bounds the evaluations with incomplete results; then the policy is in force. An
	// unavailable registry delays a policy, but does not drop it.
	maxUnsure = 3
	// guardLook is the time between two checks for held policies, in addition to changes.
	guardLook = 10 * time.Second
	// maxNamed bounds the workloads that an event or a log line names.
	maxNamed = 10
)

// trying is the leader's state of evaluations.
type trying struct {
	gateway *assembly
	trier   *trial.Trier
	of      map[string]tried
}

// tried is the result for one version.
type tried struct {
	hash   string
	unsure int
	next   time.Time
}

// tryPolicies evaluates held policies until ctx ends, and approves those that deny no running
// workload.
func (g *assembly) tryPolicies(ctx context.Context) {
	if !g.configuration.Guards() {
		return
	}
	key, ok := g.certificates.wait(ctx)
	if !ok {
		return
	}
	trier, end, err := g.trier(key, g.busy)
	defer end()
	if err != nil {
		g.log.Error("policies cannot be tried: those that are held stay so", slog.String("error", err.Error()))
		return
	}
	t := &trying{gateway: g, trier: trier, of: map[string]tried{}}
	for ctx.Err() == nil {
		changed := g.policies.changed.Changed()
		if err := t.round(ctx, changed); err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			g.failed("what the guard approved cannot be kept")(err)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(guardLook):
		}
	}
}

// round approves the policies that need no evaluation, evaluates the held ones, and stores the
// results. It ends early when policies have changed.
func (t *trying) round(ctx context.Context, changed <-chan struct{}) error {
	g := t.gateway
	ledger, version, err := g.ledgers().load(ctx)
	now := time.Now()
	there, all, failed := g.policies.inForce.approvable(g.policies.catalog)
	if failed != nil {
		g.log.Debug("a document has no version", slog.String("error", failed.Error()))
	}
	unwritten := err != nil
	switch {
	case errors.Is(err, errNoLedger), errors.Is(err, errDamaged):
		ledger = g.policies.inForce.ledger.Load()
		if ledger == nil { // the guard starts: existing policies are approved
			ledger = held.New(versionsOf(there)...)
			g.log.Info("the guard begins: the policies that are there are approved", slog.Int("policies", len(there)), slog.String("since", err.Error()))
		}
	case err != nil:
		return err
	}
	var plain []held.Version
	var waiting []string
	for id, c := range there {
		before, known := ledger.Before(id)
		switch {
		case known && before.Hash == c.version.Hash:
		case ledger.Of(c.version, now) == held.Itself:
			plain = append(plain, c.version)
		default:
			waiting = append(waiting, id)
		}
	}
	maps.DeleteFunc(t.of, func(id string, _ tried) bool { return !slices.Contains(waiting, id) })
	next := ledger.Approve(plain...).There(now, all...)
	if !next.Equal(ledger) || unwritten {
		if err := g.ledgers().save(ctx, next, version); err != nil {
			return err
		}
	}
	if !next.Equal(g.policies.inForce.ledger.Load()) {
		g.policies.approve("", next)
	}
	return t.tryAll(ctx, changed, waiting, there)
}

func versionsOf(there map[string]candidate) []held.Version {
	var list []held.Version
	for _, c := range there {
		list = append(list, c.version)
	}
	return list
}

// tryAll evaluates the due policies, and approves each at once. When policies have changed, it
// ends after the current evaluation: another one may now have precedence.
func (t *trying) tryAll(ctx context.Context, changed <-chan struct{}, waiting []string, there map[string]candidate) error {
	for _, id := range t.inOrder(waiting, there) {
		c := there[id]
		now := t.of[id]
		if now.hash != c.version.Hash {
			now = tried{hash: c.version.Hash}
		}
		if time.Now().Before(now.next) {
			continue
		}
		approved, err := t.try(ctx, c, &now)
		t.of[id] = now
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !approved {
			t.gateway.failed("a policy cannot be tried")(err)
		} else if err := t.approve(ctx, c.version); err != nil {
			return err
		}
		select {
		case <-changed:
			return nil
		default:
		}
	}
	return nil
}

// inOrder sorts the cluster's policies before those of namespaces, so that no tenant delays one
// of them. Within these, the policies with the oldest evaluation come first.
func (t *trying) inOrder(waiting []string, there map[string]candidate) []string {
	isTenant := func(id string) int { return min(1, len(there[id].policy.Namespace)) }
	return slices.SortedFunc(slices.Values(waiting), func(a, b string) int {
		return cmp.Or(isTenant(a)-isTenant(b), t.of[a].next.Compare(t.of[b].next), cmp.Compare(a, b))
	})
}

// approve stores the approval of a version.
func (t *trying) approve(ctx context.Context, v held.Version) error {
	ledger, version, err := t.gateway.ledgers().load(ctx)
	if err != nil {
		return err
	}
	ledger = ledger.Approve(v)
	if err := t.gateway.ledgers().save(ctx, ledger, version); err != nil {
		return err
	}
	t.gateway.policies.approve("", ledger)
	return nil
}

// try evaluates one policy and records the result.
func (t *trying) try(ctx context.Context, c candidate, now *tried) (approved bool, err error) {
	g := t.gateway
	most := trialTime
	if c.policy.Namespace != "" {
		most = tenantTrialTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	now.next = time.Now().Add(heldPause)
	list, before := g.withoutBefore(c.policy, c.version.ID)
	found, err := t.trier.Try(ctx, list, before, 0)
	if err != nil {
		return false, err
	}
	attrs := []any{slog.String("policy", c.version.ID), slog.String("trial", found.Summary())}
	switch {
	case found.StoppedCount > 0:
		g.metrics.PolicyTried(metrics.TrialHeld)
		g.log.Warn("a policy is held: "+howToGoOn, append(attrs, slog.Any("stops", namesOf(found.Stopped)))...)
		g.tellHeld(c, "PolicyHeld", heldNote(found))
		return false, nil
	case found.Certain() || found.Whole && found.Why != "":
		g.metrics.PolicyTried(metrics.TrialApproved)
		g.log.Info("a policy was tried and is in force", attrs...)
		return true, nil
	}
	g.metrics.PolicyTried(metrics.TrialUnsure)
	now.unsure++
	if now.unsure < maxUnsure {
		now.next = time.Now().Add(unsurePause)
		g.log.Warn("a policy is held: not everything could be looked at; it is tried again", append(attrs, slog.Any("unknown", namesOf(found.Unlooked)))...)
		return false, nil
	}
	g.log.Warn("a policy is in force although not everything could be looked at", append(attrs, slog.Any("unknown", namesOf(found.Unlooked)))...)
	g.tellHeld(c, "PolicyUntried", found.Summary())
	return true, nil
}

// howToGoOn lists the remedies for a held policy.
const howToGoOn = "let what it names be as it wants it, have it audit first, or accept it by the annotation " + held.Annotation + ": " + held.Accepted

func heldNote(found trial.Result) string {
	note := "held: " + found.Summary()
	for _, f := range fewOf(found.Stopped) {
		note += "\n" + f.String()
	}
	return note + "\nnext: " + howToGoOn
}

func namesOf(list []trial.Found) []string {
	var lines []string
	for _, f := range fewOf(list) {
		lines = append(lines, f.String())
	}
	return lines
}

func fewOf(list []trial.Found) []trial.Found { return list[:min(len(list), maxNamed)] }

// tellHeld writes an event about a policy.
func (g *assembly) tellHeld(c candidate, reason, note string) {
	if g.cluster.events == nil {
		return
	}
	g.cluster.events.Record(record.Event{Type: core.EventTypeWarning, Reason: reason, Action: "Try", Regarding: policyOf(c.policy), Note: note})
}

// withoutBefore returns the two sides of the comparison: the policies with the new version, and
// the current ones in its place.
func (g *assembly) withoutBefore(p *policy.Policy, id string) (now, before []*policy.Policy) {
	now = []*policy.Policy{p}
	var others []*policy.Policy
	if set := g.activePolicies(); set != nil {
		for _, each := range set.Policies() {
			switch {
			case each.ID() == id:
				if each.AuditedBy == "" {
					before = append(before, each)
				}
			case each.Kind == p.Kind && each.AuditedBy == "":
				others = append(others, each)
			}
		}
	}
	if p.Kind != "ClusterImagePolicy" {
		return now, before
	}
	// Images that no ClusterImagePolicy matches may be denied because there is one.
	return g.withUnmatched(now, others), g.withUnmatched(before, others)
}

// withUnmatched adds the policy for images that none of the ClusterImagePolicies matches.
func (g *assembly) withUnmatched(list, others []*policy.Policy) []*policy.Policy {
	made, err := g.policies.inForce.beside(slices.Concat(list, others))
	if err != nil {
		return list
	}
	return slices.Concat(list, made)
}

// doorTrial implements admission.ImpactAnalysis: a policy with denials that are found in time is refused.
type doorTrial struct {
	gateway *assembly
	trier   *trial.Trier
	turn    chan struct{} // holds one: the evaluations of many replicas share their registries
}

// tryAtDoor makes the evaluation of the policy endpoint; nil without the guard.
func (g *assembly) tryAtDoor(key []byte) (admission.ImpactAnalysis, error) {
	if g.cluster == nil || !g.configuration.Guards() {
		return nil, nil
	}
	trier, end, err := g.trier(key, nil)
	g.group.OnClose(end)
	if err != nil {
		return nil, err
	}
	return &doorTrial{gateway: g, trier: trier, turn: make(chan struct{}, 1)}, nil
}

const (
	// doorTime bounds an evaluation within the policy webhook (the API server allows ten
	// seconds), and doorObjects bounds its objects. If it takes longer, the policy is held and
	// the leader evaluates it.
	doorTime    = 6 * time.Second
	doorMargin  = 1500 * time.Millisecond
	doorObjects = 20_000
)

// Analyze implements admission.ImpactAnalysis.
func (d *doorTrial) Analyze(ctx context.Context, raw []byte) (warnings []string, err error) {
	g := d.gateway
	now := g.policies.inForce
	entry := g.policies.catalog.Compile(catalog.Document{Text: raw, Source: "the request"})
	if entry.State != catalog.Ours || entry.Policy == nil {
		return nil, nil
	}
	if audits(now.sources, fromCluster+"/") {
		return []string{"quaymaster: this policy only audits: the setting policies.audit names the cluster's policies"}, nil
	}
	ledger := now.ledger.Load()
	v, err := held.Read(entry.Policy, raw)
	if err != nil || ledger.Of(v, time.Now()) == held.Itself {
		return nil, err
	}
	until := time.Now().Add(doorTime)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-doorMargin).Before(until) {
		until = deadline.Add(-doorMargin)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	const waits = "quaymaster: the guard holds this policy until it has been tried against what runs: what was approved before stays in force, and a new policy only audits"
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return []string{waits}, nil
	}
	list, before := g.withoutBefore(entry.Policy, v.ID)
	found, err := d.trier.Try(ctx, list, before, doorObjects)
	switch {
	case err != nil:
		g.failed("a policy cannot be tried")(err)
		return []string{waits}, nil
	case found.StoppedCount > 0:
		g.metrics.PolicyTried(metrics.TrialRefused)
		return nil, errors.New(refusal(found))
	case !found.Certain():
		return []string{waits + " (" + found.Summary() + ")"}, nil
	}
	return nil, nil
}

// refusal formats the message to the author of a policy.
func refusal(found trial.Result) string {
	text := found.Summary() + "\nnext: " + howToGoOn + "\n"
	for i, f := range found.Stopped {
		if i == maxRefusal {
			text += fmt.Sprintf("and %d more\n", found.StoppedCount-i)
			break
		}
		text += f.String() + "\n"
	}
	for i, f := range found.Unlooked {
		if i == maxUnlooked {
			break
		}
		text += "not looked at: " + f.String() + "\n"
	}
	return text
}

// maxRefusal and maxUnlooked bound the workloads that a refusal names.
const (
	maxRefusal  = 20
	maxUnlooked = 3
)

package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/set"
)

const (
	// pendingPause is the time between two rounds while a change-over waits; restPause bounds the time without one.
	pendingPause, restPause = time.Second, 30 * time.Second
	// verifyTime is how long policies stay native while their objects cannot be listed, such as without a permission. It is
	// longer than the time between two rounds.
	verifyTime = restPause + 15*time.Second
)

var errNotLoaded = errors.New("the policies are not loaded yet")

// What a change-over waits for.
const (
	waitsForObjects = "the native policy is being written"
	waitsForCheck   = "the type check of the native policy is not there yet (kube-controller-manager)"
	waitsForProbe   = "not every API server is known to evaluate the native policy yet"
)

// controller makes the objects of the API server those that the active policies want, on the leader.
type controller struct {
	Config
	planner planner
	api     api
	store   store
	probes  *probes
	// reported are the states that were logged, by policy.
	reported map[string]string
	// verified is when the objects of the native policies were last found as they are recorded; zero in a new term.
	verified time.Time
}

// run makes rounds until ctx ends: after changes, and while something is pending.
func (c *controller) run(ctx context.Context, changed <-chan struct{}) {
	for ctx.Err() == nil {
		policies := c.Policies.Changed()
		wait := restPause
		pending, err := c.round(ctx)
		if ctx.Err() == nil && time.Since(c.verified) > verifyTime {
			err = errors.Join(err, c.lose(ctx, cmp.Or(err, errNotLoaded)))
		}
		if err != nil && ctx.Err() == nil {
			c.Log.Error("the native policies could not be brought up to date", slog.String("error", err.Error()))
		}
		if pending || err != nil {
			wait = pendingPause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-policies:
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// view is what one round read.
type view struct {
	plans    map[string]plan
	have     map[key]stored
	states   record.States
	version  string // the resourceVersion of the states
	coverage record.Coverage
	// drifted are the policies of which an object is not as it was written.
	drifted []string
	// next are the states that the round arrives at.
	next record.States
}

// round makes one pass. pending means that the next one may arrive at more, without any change of the inputs.
func (c *controller) round(ctx context.Context) (pending bool, err error) {
	v := &view{next: record.States{}}
	active, documents := c.documents()
	if active == nil {
		return true, nil
	}
	now, err := served(c.Typed.Discovery())
	if err != nil {
		return true, err
	}
	v.plans = c.planner.plans(documents, active, now)
	states, kept, err := c.store.states(ctx)
	if err != nil {
		return true, err
	}
	v.states = states
	v.have, err = c.api.list(ctx, now)
	if err != nil {
		return true, err
	}
	c.begin(v)
	// A loss is recorded before anything else is done, and a gain after all.
	if !v.next.Equal(v.states) {
		kept, err = c.store.save(ctx, v.next, kept)
		if err != nil {
			return true, err
		}
		v.states = maps.Clone(v.next)
	}
	c.verified = time.Now()
	for _, id := range v.drifted {
		c.Metrics.NativeRestored()
		c.Log.Warn("native policies were changed or deleted by another client, or are wanted otherwise; they are restored, and the webhook enforces the policy until then",
			slog.String("policy", id))
	}
	// The coverage is read after the record: policies that the webhooks cover in knowledge of the record stay in them.
	v.coverage, err = c.store.coverage(ctx)
	if err != nil {
		return true, err
	}
	if kept != nil {
		v.version = kept.ResourceVersion
	}
	failed := c.write(ctx, v)
	failed = errors.Join(failed, c.check(ctx, v, now))
	failed = errors.Join(failed, c.remove(ctx, v))
	if !v.next.Equal(v.states) {
		if _, err := c.store.save(ctx, v.next, kept); err != nil {
			return true, errors.Join(failed, err)
		}
	}
	c.report(v)
	return c.isPending(v), failed
}

// lose records that no policy is native, since nobody would notice that its objects are gone.
func (c *controller) lose(ctx context.Context, why error) error {
	states, kept, err := c.store.states(ctx)
	if err != nil {
		return err
	}
	lost := false
	for id, s := range states {
		if s.Native {
			s.Native, s.Reason, lost = false, "it is not known whether the native policy is in force: "+why.Error(), true
			states[id] = s
		}
	}
	if lost {
		_, err = c.store.save(ctx, states, kept)
	}
	return err
}

// documents reads the active policies and their texts.
func (c *controller) documents() (*set.Set, []document) {
	var list []document
	active := c.Policies.Policies()
	if active != nil {
		c.Policies.Texts(func(entry catalog.Entry, text []byte) { list = append(list, document{entry, text}) })
	}
	return active, list
}

// begin sets the states to those before any write: a policy stays native only if its objects are those that were
// recorded for the same version.
func (c *controller) begin(v *view) {
	for id, p := range v.plans {
		was := v.states[id]
		switch now := digest(p.objects, v.have); {
		case p.reason != "":
			v.next[id] = record.State{Hash: p.hash, Reason: p.reason}
		case was.Hash == p.hash && now != "" && was.Objects == now:
			v.next[id] = was
		default:
			v.next[id] = record.State{Hash: p.hash, Reason: waitsForObjects}
			if was.Objects != "" && was.Hash == p.hash {
				v.drifted = append(v.drifted, id)
			}
		}
	}
}

// write writes the objects of the plans of which one is missing or different: all policies before all bindings.
func (c *controller) write(ctx context.Context, v *view) error {
	var failed []error
	for _, bindings := range []bool{false, true} {
		for _, id := range slices.Sorted(maps.Keys(v.plans)) {
			for _, o := range v.plans[id].objects {
				if v.next[id].Reason != waitsForObjects || o.isBinding() != bindings {
					continue
				}
				made, err := c.api.write(ctx, o)
				if err == nil {
					v.have[o.key()] = made
					continue
				}
				v.next[id] = record.State{Hash: v.plans[id].hash, Reason: "the native policy cannot be written: " + err.Error()}
				if _, answered := errors.AsType[*apierrors.StatusError](err); !answered && !errors.Is(err, errTaken) {
					failed = append(failed, err)
				}
			}
		}
	}
	return errors.Join(failed...)
}

// check moves the policies whose objects are written, checked and seen at every API server to native.
func (c *controller) check(ctx context.Context, v *view, served versions) error {
	var written []stored
	var ready []string // not native yet
	for _, id := range slices.Sorted(maps.Keys(v.plans)) {
		p, now := v.plans[id], v.next[id]
		if len(p.objects) == 0 || !now.Native && !isWaiting(now) && now.Objects == "" {
			continue
		}
		why := ""
		for _, o := range p.objects {
			have := v.have[o.key()]
			written = append(written, have)
			why = cmp.Or(why, unchecked(have))
		}
		if now.Native {
			continue
		}
		v.next[id] = record.State{Hash: p.hash, Objects: digest(p.objects, v.have), Reason: cmp.Or(why, waitsForProbe)}
		if why == "" {
			ready = append(ready, id)
		}
	}
	if len(ready) == 0 {
		return c.probes.clean(ctx, v.have)
	}
	seen, err := c.probes.seen(ctx, written, v.have, served)
	if err != nil {
		c.Log.Debug("not every API server is known to evaluate the native policies", slog.String("error", err.Error()))
	}
	for _, id := range ready {
		now := v.next[id]
		if seen && now.Objects != "" {
			v.next[id] = record.State{Hash: now.Hash, Objects: now.Objects, Native: true}
		}
	}
	return nil
}

// isWaiting reports whether the next rounds may make a policy native.
func isWaiting(s record.State) bool {
	return s.Reason == waitsForObjects || s.Reason == waitsForCheck || s.Reason == waitsForProbe
}

// remove deletes the objects that no plan wants, once another side enforces the policy.
func (c *controller) remove(ctx context.Context, v *view) error {
	wanted := map[key]bool{}
	for _, p := range v.plans {
		for _, o := range p.objects {
			wanted[o.key()] = true
		}
	}
	var failed []error
	for _, bindings := range []bool{true, false} {
		for at, s := range v.have {
			id := s.policy()
			if id == "" || wanted[at] || s.isBinding() != bindings {
				continue
			}
			p, active := v.plans[id]
			if active && !v.coverage.Covers(v.version, id, p.hash) && !v.next[id].Native {
				continue // it is the only one that enforces the policy
			}
			if err := c.api.remove(ctx, s); err != nil {
				failed = append(failed, err)
				continue
			}
			delete(v.have, at)
			c.Log.Info("a native policy was removed", slog.String("policy", id), slog.String("kind", s.kind()), slog.String("name", s.content.GetName()))
		}
	}
	return errors.Join(failed...)
}

// isPending reports whether a change-over or a removal waits.
func (c *controller) isPending(v *view) bool {
	for _, s := range v.next {
		if isWaiting(s) {
			return true
		}
	}
	for at, s := range v.have {
		if id := s.policy(); id != "" && !slices.ContainsFunc(v.plans[id].objects, func(o object) bool { return o.key() == at }) {
			return true
		}
	}
	return false
}

// report logs and counts the states.
func (c *controller) report(v *view) {
	native := 0
	for id, s := range v.next {
		if s.Native {
			native++
		}
		if now := fmt.Sprint(s.Native, s.Reason); c.reported[id] != now {
			c.reported[id] = now
			c.Log.Info("where a policy is enforced", slog.String("policy", id), slog.Bool("native", s.Native), slog.String("reason", s.Reason))
		}
	}
	maps.DeleteFunc(c.reported, func(id, _ string) bool { _, ok := v.next[id]; return !ok })
	c.Metrics.NativePolicies(native, len(v.next)-native)
}

// unchecked returns why the type check of an object does not let it replace the webhook; empty if it does. The check is
// made of validating policies alone, by kube-controller-manager.
func unchecked(s stored) string {
	if s.resource != validatingPolicies {
		return ""
	}
	at, _, _ := unstructured.NestedInt64(s.content.Object, "status", "observedGeneration")
	_, checked, _ := unstructured.NestedMap(s.content.Object, "status", "typeChecking")
	if at != s.content.GetGeneration() || !checked {
		return waitsForCheck
	}
	warnings, _, _ := unstructured.NestedSlice(s.content.Object, "status", "typeChecking", "expressionWarnings")
	for _, one := range warnings {
		field, _ := one.(map[string]any)
		return fmt.Sprintf("the type check of the API server warns about %v: %v", field["fieldRef"], field["warning"])
	}
	return ""
}

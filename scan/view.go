package scan

import (
	"context"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// View is the state for scans: another state without the policies that a scan leaves out. It is
// safe for concurrent use. Create one with NewView.
type View struct {
	of gate.State

	mu      sync.Mutex
	whole   *set.Set
	scanned *set.Set
	left    []LeftOut
}

var _ gate.State = (*View)(nil)

// NewView returns a view of a state.
func NewView(of gate.State) *View { return &View{of: of} }

// Snapshot implements gate.State.
func (v *View) Snapshot(ctx context.Context) (gate.Snapshot, error) {
	now, err := v.of.Snapshot(ctx)
	if err != nil {
		return gate.Snapshot{}, err
	}
	now.Policies, _, err = v.policies(now.Policies)
	return now, err
}

// LeftOut returns the policies that are currently left out.
func (v *View) LeftOut(ctx context.Context) ([]LeftOut, error) {
	now, err := v.of.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	_, left, err := v.policies(now.Policies)
	return left, err
}

// policies returns the set of evaluated policies, cached for each source set.
func (v *View) policies(whole *set.Set) (*set.Set, []LeftOut, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole == whole {
		return v.scanned, v.left, nil
	}
	scanned, left, err := Scanned(whole)
	if err != nil {
		return nil, nil, err
	}
	v.whole, v.scanned, v.left = whole, scanned, left
	return scanned, left, nil
}

// Scanned returns the set of the policies that a scan evaluates, with the exceptions that hold
// for scans and the overrides of the whole, and the policies that it leaves out. Policies that
// only generate objects are in neither, and of those that only mutate, none is left out.
func Scanned(whole *set.Set) (*set.Set, []LeftOut, error) {
	var (
		asked []*policy.Policy
		left  []LeftOut
	)
	for _, p := range whole.Policies() {
		switch {
		case len(p.Rules)+len(p.Validations) == 0 && (len(p.Mutations) == 0 || p.Unscanned != "") && p.Broken == nil:
		case p.Unscanned != "":
			left = append(left, LeftOut{Policy: p, Why: p.Unscanned})
		default:
			asked = append(asked, p)
		}
	}
	joined, err := set.Join(asked, heeded(whole.Exceptions()), whole.Overrides())
	return joined, left, err
}

// heeded returns the exceptions that hold for scans.
func heeded(exceptions []*policy.Exception) []*policy.Exception {
	return slices.DeleteFunc(slices.Clone(exceptions), func(e *policy.Exception) bool { return e.Unscanned })
}

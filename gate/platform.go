package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// maxPlatforms bounds the children of an index that are verified one by one. The largest
// official images have about a dozen.
const maxPlatforms = 64

// family holds the children that an index lists.
type family struct {
	index    image.Pinned
	children []image.Descriptor
	err      error
}

// widen evaluates other digests than the one that the reference names, where a policy
// selects platforms, or where a child was named and the signature may be on its index.
func (w *work) widen(ctx context.Context) {
	if w.asksPlatforms() {
		if w.children.index.IsZero() { // else an earlier place was asked about them
			w.children = w.family(ctx, w.pinned)
		}
		w.proveChildren(ctx)
	}
	if w.ref.Digest().IsZero() || w.ref.Tag() == "" || !w.unproved() {
		return
	}
	if w.parent.index.IsZero() {
		w.parent = w.parentOf(ctx)
	}
	if w.parent.err != nil || w.parent.index.IsZero() || len(w.parent.children) == 0 {
		return
	}
	w.prove(ctx, w.parent.index, w.questions())
	w.upward = make([]policy.Decision, len(w.checks))
	for i, check := range w.checks {
		if check.NeedsProof() && check.Platforms == policy.PlatformIndex && !decide.Contradicted(w.own[i]) {
			w.upward[i] = w.ask(ctx, check, w.parent.index)
		}
	}
}

func (w *work) asksPlatforms() bool {
	for _, check := range w.checks {
		if check.Platforms != policy.PlatformIndex && check.NeedsProof() {
			return true
		}
	}
	return false
}

// unproved reports whether a check is not met by the named digest itself.
func (w *work) unproved() bool {
	for i, check := range w.checks {
		if check.NeedsProof() && w.own[i].Result != policy.Pass {
			return true
		}
	}
	return false
}

func (w *work) proveChildren(ctx context.Context) {
	var questions []policy.Question
	for _, check := range w.checks {
		if check.Platforms != policy.PlatformIndex {
			questions = append(questions, check.Questions()...)
		}
	}
	var group errgroup.Group
	group.SetLimit(w.gate.options.images)
	for _, child := range w.children.children {
		group.Go(func() error {
			return panics.Catch(func() { w.prove(ctx, w.pinned.Child(child), questions) })
		})
	}
	if err := group.Wait(); err != nil {
		w.children.err = err
	}
}

// parentOf resolves the tag of a reference that has both, and returns the index
// behind it if that lists the named digest.
func (w *work) parentOf(ctx context.Context) family {
	tagged, err := image.Parse(w.ref.Repository().String() + ":" + w.ref.Tag())
	if err != nil {
		return family{err: err}
	}
	index, err := w.resolveTag(ctx, tagged)
	if err != nil || index.Digest() == w.pinned.Digest() {
		return family{err: err}
	}
	found := w.family(ctx, index)
	for _, child := range found.children {
		if child.Digest == w.pinned.Digest() {
			return found
		}
	}
	return family{err: found.err}
}

// family reads the manifest behind a digest; of a manifest that is no index, the
// family is empty.
func (w *work) family(ctx context.Context, pinned image.Pinned) family {
	descriptor, body, err := w.manifest(ctx, pinned)
	if err != nil {
		return family{err: err}
	}
	out := family{index: pinned}
	if !descriptor.IsIndex() {
		return out
	}
	var index struct {
		Manifests []image.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return family{err: &image.Error{Kind: image.Corrupt, Op: "read index", On: pinned.String(), Err: err}}
	}
	for _, child := range index.Manifests {
		if p := child.Platform; p != nil && p.OS == "unknown" && p.Architecture == "unknown" {
			continue // BuildKit's attestations; runtimes choose by platform, and none is unknown
		}
		out.children = append(out.children, child)
	}
	if len(out.children) > maxPlatforms {
		return family{err: &image.Error{
			Kind: image.Bound, Op: "read index", On: pinned.String(),
			Err: fmt.Errorf("%d platforms, at most %d are looked at", len(out.children), maxPlatforms),
		}}
	}
	return out
}

// decide evaluates a check by the named digest and, where the policy or the reference
// requires it, by the digest's family.
func (w *work) decide(i int) policy.Decision {
	check := w.checks[i]
	if w.err != nil && check.NeedsDigest() {
		return policy.Decision{
			Check: check, Result: policy.Indeterminate,
			Reasons: []policy.Reason{policy.LookReason(w.err, check.Entry)},
		}
	}
	own := w.own[i]
	if !check.NeedsProof() {
		return own
	}
	switch check.Platforms {
	case policy.PlatformEach:
		return w.each(check, own)
	case policy.PlatformAny:
		return w.any(check, own)
	}
	if w.provedUpward(i) {
		return w.listed(w.upward[i])
	}
	return own
}

// provedUpward reports whether a check is met by the index that lists the named
// digest, and not by the digest itself.
func (w *work) provedUpward(i int) bool {
	return w.own[i].Result != policy.Pass && i < len(w.upward) && w.upward[i].Result == policy.Pass
}

// listed adds to a decision about the index that it lists the named digest.
func (w *work) listed(proved policy.Decision) policy.Decision {
	proved.Reasons = append(slices.Clip(proved.Reasons), policy.Reason{
		Code: policy.Verified, Path: proved.Check.Entry,
		Message: "the proved index " + w.parent.index.Digest().Short() + " lists this platform",
	})
	return proved
}

// each requires every child to be verified; a manifest that is no index counts as its own
// only child.
func (w *work) each(check *policy.Check, own policy.Decision) policy.Decision {
	if w.children.err != nil {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(w.children.err, check.Entry)}}
	}
	if len(w.children.children) == 0 {
		return own
	}
	joined := policy.Decision{Check: check, Result: policy.Pass}
	var met, missed []policy.Reason
	for _, child := range w.children.children {
		one := w.ofChild(check, child)
		if one.Result == policy.Pass {
			joined.Facts = append(joined.Facts, one.Facts...)
			met = append(met, one.Reasons...)
			continue
		}
		missed = append(missed, one.Reasons...)
		if joined.Result != policy.Fail { // a definite failure outweighs an error
			joined.Result = one.Result
		}
	}
	joined.Reasons = met
	if joined.Result != policy.Pass {
		joined.Facts, joined.Reasons = nil, missed
	}
	return joined
}

// any is content with the index or one child.
func (w *work) any(check *policy.Check, own policy.Decision) policy.Decision {
	if own.Result == policy.Pass {
		return own
	}
	if w.children.err != nil {
		own.Result = policy.Indeterminate
		own.Reasons = append(own.Reasons, policy.LookReason(w.children.err, check.Entry))
		return own
	}
	for _, child := range w.children.children {
		one := w.ofChild(check, child)
		if one.Result == policy.Pass {
			return one
		}
		if one.Result == policy.Indeterminate {
			own.Result = policy.Indeterminate
		}
	}
	return own
}

func (w *work) ofChild(check *policy.Check, child image.Descriptor) policy.Decision {
	one := decide.Check(check, w.answersFor(child.Digest))
	name := child.Digest.Short()
	if child.Platform != nil {
		name = child.Platform.String()
	}
	for i := range one.Reasons {
		one.Reasons[i].Message = "platform " + name + ": " + one.Reasons[i].Message
	}
	return one
}

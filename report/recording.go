package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/workload"
)

// NewList records outcomes, in their order.
func NewList(outcomes []gate.Outcome) List {
	list := List{APIVersion: APIVersion, Kind: Kind, Summary: Count(outcomes), Items: make([]Record, len(outcomes))}
	for i, outcome := range outcomes {
		list.Items[i] = NewRecord(outcome)
	}
	return list
}

// Failed returns the list of a run without decisions, with the reason.
func Failed(why string) List {
	return List{APIVersion: APIVersion, Kind: Kind, Items: []Record{}, Error: why}
}

// NewRecord records one outcome. It does not modify the outcome.
func NewRecord(o gate.Outcome) Record {
	record := Record{
		Object: newObject(o), Result: o.Result, Images: []Image{}, unmatched: isUncheckedDocument(o),
		Reasons: advised(o.Reasons), Warnings: advised(o.Warnings),
		PolicySetHash: o.PolicyHash, TrustGeneration: o.TrustGeneration, MirrorSetHash: o.MirrorHash,
		Cost: newCost(o.Cost), DurationMilliseconds: milliseconds(o.Duration),
	}
	if record.Object.Position != nil {
		record.read = readOf(o)
	}
	for _, v := range inOrder(o.Verdicts) {
		image := newImage(v)
		image.Position = record.PositionOf(v.Image.Pointer)
		record.Images = append(record.Images, image)
	}
	for _, r := range o.Rules {
		rule := Rule{Policy: newPolicy(r.Policy), Rule: r.Rule, Kind: r.Kind, Skipped: r.Skip, Changed: r.Changed,
			Properties: r.Properties, Exception: newException(r.Exception)}
		if r.Err != nil {
			rule.Error = r.Err.Error()
		}
		if r.OfObject() && r.Err == nil && r.Skip == "" {
			rule.Result, rule.Action, rule.Reasons = cmp.Or(r.Ruling.Result, policy.Pass), r.Action, advised(r.Ruling.Reasons)
		}
		record.Rules = append(record.Rules, rule)
	}
	return record
}

// readOf returns the object with the evaluated images: a policy may have mutated it before.
func readOf(o gate.Outcome) workload.Object {
	if !o.Changed.IsZero() {
		return o.Changed
	}
	return o.Object
}

// written returns the position of a value of an object.
func written(object workload.Object, pointer string) *workload.Position {
	if position, ok := object.Position(pointer); ok {
		return &position
	}
	return nil
}

func newObject(o gate.Outcome) Object {
	object := Object{Source: o.Source, Position: written(readOf(o), ""), Template: o.Object.Template()}
	if s := o.Subject; s != nil {
		object.APIVersion = s.Version
		if s.Group != "" {
			object.APIVersion = s.Group + "/" + s.Version
		}
		object.Kind, object.Namespace, object.Name = s.Kind, s.Namespace, s.Name
	}
	return object
}

func newImage(v gate.Verdict) Image {
	image := Image{
		Container: v.Image.Container, Role: v.Image.Role, Pointer: v.Image.Pointer,
		Written: v.Image.Ref.Written(), Reference: v.Image.Ref.String(),
		Digest: v.Pinned.Digest(), Pinned: v.Pinned.String(), Pin: v.Pin, Mirror: newMirror(v.Redirect),
		Result: v.Result, Matched: v.Matched(),
		Reasons: advised(v.Reasons), Warnings: advised(v.Warnings),
		Decisions: []Decision{},
		Cost:      newCost(v.Cost), DurationMilliseconds: milliseconds(v.Duration),
	}
	if image.Reasons == nil {
		image.Reasons = []policy.Reason{}
	}
	for _, d := range v.Decisions {
		image.Decisions = append(image.Decisions, newDecision(d))
	}
	if o := v.Override; o != nil {
		image.Override = o.ID()
		for i := range image.Decisions {
			if d := &image.Decisions[i]; o.Effect == policy.OverrideAllow && d.Effect != EffectAllow {
				d.Effect = EffectWarn
			}
		}
	}
	return image
}

func newDecision(d policy.Decision) Decision {
	decision := Decision{
		Policy: newPolicy(d.Check.Policy), Rule: d.Check.Rule, Entry: d.Check.Entry, JudgedAs: judgedAs(d.Check),
		Action: d.Check.Action, Result: d.Result, Effect: effect(d), Reasons: advised(d.Reasons),
		Exception: newException(d.Check.Exception),
	}
	for _, fact := range d.Facts {
		decision.Proofs = append(decision.Proofs, newProof(fact))
	}
	slices.SortStableFunc(decision.Proofs, compareProofs)
	return decision
}

// effect returns the effect of a decision on gate's answer, for display only; gate's answer is
// recorded, too.
func effect(d policy.Decision) Effect {
	failOpen := d.Check.Policy != nil && d.Check.Policy.FailOpen
	switch {
	case d.Result == policy.Pass || d.Result == policy.Skipped:
		return EffectAllow
	case d.Check.Action.Admits() || d.Result == policy.Indeterminate && failOpen:
		return EffectWarn
	case d.Result == policy.Indeterminate:
		return EffectError
	default:
		return EffectDeny
	}
}

func newException(e *policy.Exception) *Exception {
	if e == nil {
		return nil
	}
	return &Exception{Name: e.ID(), Expires: utc(e.Expires), Reason: e.Reason, AsPass: e.AsPass}
}

func newPolicy(p *policy.Policy) Policy {
	if p == nil {
		return Policy{}
	}
	return Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Source: p.Source, Hash: p.Hash, FailOpen: p.FailOpen, AuditedBy: p.AuditedBy}
}

func newProof(f verify.Fact) Proof {
	proof := Proof{
		Role: string(f.Role), Format: string(f.Format), Digest: f.Subject, Signer: f.Signer,
		Annotations: f.Annotations, SignedAt: utc(f.SignedAt), TimeSource: f.TimeSource,
		ExpiresAt: utc(f.Expires), Notes: f.Notes,
		Found: newFound(f.Origin),
	}
	if f.Statement != nil {
		proof.PredicateType = f.Statement.PredicateType
	}
	for _, entry := range f.Entries {
		entry.Time = utc(entry.Time)
		proof.LogEntries = append(proof.LogEntries, entry)
	}
	return proof
}

func newFound(o attest.Origin) Found {
	return Found{Repository: o.Repository.String(), Via: o.Via, Manifest: o.Manifest}
}

func compareProofs(a, b Proof) int {
	return cmp.Or(
		-strings.Compare(a.Role, b.Role), // signatures first
		strings.Compare(a.PredicateType, b.PredicateType),
		strings.Compare(a.Digest.String(), b.Digest.String()),
		strings.Compare(a.Signer.KeyFingerprint+a.Signer.Issuer+a.Signer.Subject, b.Signer.KeyFingerprint+b.Signer.Issuer+b.Signer.Subject),
		strings.Compare(a.Found.String(), b.Found.String()),
	)
}

// String returns repository@manifest, or repository:via.
func (f Found) String() string {
	switch {
	case f.Repository == "":
		return f.Via
	case !f.Manifest.IsZero():
		return f.Repository + "@" + f.Manifest.String()
	default:
		return f.Repository + ":" + f.Via
	}
}

func newCost(c gate.Cost) Cost {
	cost := Cost{Requests: c.Requests, CountedPulls: c.CountedPulls, Bytes: c.Bytes}
	if c.Requests > 0 && c.RateLimitRemaining >= 0 {
		cost.RateLimitRemaining = &c.RateLimitRemaining
	}
	return cost
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// utc normalises a time to UTC.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// inOrder returns the verdicts in numeric order: containers/2 before containers/10.
func inOrder(verdicts []gate.Verdict) []gate.Verdict {
	sorted := slices.Clone(verdicts)
	slices.SortStableFunc(sorted, func(a, b gate.Verdict) int {
		return slices.CompareFunc(strings.Split(a.Image.Pointer, "/"), strings.Split(b.Image.Pointer, "/"), compareSteps)
	})
	return sorted
}

func compareSteps(a, b string) int {
	m, errM := strconv.ParseUint(a, 10, 32)
	n, errN := strconv.ParseUint(b, 10, 32)
	if errM == nil && errN == nil {
		return cmp.Compare(m, n)
	}
	return strings.Compare(a, b)
}

// advised returns the reasons, each with its hint.
func advised(reasons []policy.Reason) []policy.Reason {
	if reasons == nil {
		return nil
	}
	out := make([]policy.Reason, len(reasons))
	for i, r := range reasons {
		if r.Hint == "" {
			r.Hint = hint.Of(r.Code)
		}
		out[i] = r
	}
	return out
}

package gate

import (
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Answer is the gate's word on an image or an object.
type Answer string

// The answers.
const (
	Allow Answer = "allow"
	Deny  Answer = "deny"
	// Unable: could not look, and the policy does not admit that.
	Unable Answer = "unable"
)

// Verdict is everything that was found out and decided about one image of an
// object. It is immutable.
type Verdict struct {
	Image policy.Image
	// Pinned is zero when no digest was asked for or found.
	Pinned image.Pinned
	Answer Answer
	// Reasons for the answer, the most telling first.
	Reasons []policy.Reason
	// Decisions of the checks, in the order of policies and rules. None: no
	// policy speaks of the image.
	Decisions []policy.Decision
	// Warnings are failures that do not deny: under audit, or admitted by the
	// policy's failure setting.
	Warnings []policy.Reason
	// Redirect is what a mirror made of it; nil where none speaks of it.
	Redirect *Redirect
	// Pin says that a policy wants the reference pinned to the digest.
	Pin bool
	// Override is the ImageOverride that decided, against what policies say or beside
	// them; nil where none did.
	Override *policy.Override
	Cost     Cost
	Duration time.Duration

	allowance *policy.Overruling // that speaks of it, whether it was used or not
}

// Matched reports whether any policy speaks of the image.
func (v Verdict) Matched() bool { return len(v.Decisions) > 0 }

// Redirect is what became of an image that a mirror speaks of.
type Redirect struct {
	// Mirror names the document and the entry, as in RegistryMirror/hub[0].
	Mirror string
	// Target is the image at the mirror that serves the digest; zero where it stays
	// where it was written.
	Target image.Pinned
	// Attempts has an entry for each target in order; none where none was to be
	// asked, and then Why says why.
	Attempts []redirect.Attempt
	Why      string
	// Other is the digest that the tag stands for at the side whose answer does not
	// count, where it differs from Verdict.Pinned; else zero.
	Other image.Digest
	// PullSecrets are the Secrets that the pod is given for the target.
	PullSecrets []string
}

// Outcome is everything about one object.
type Outcome struct {
	// Subject is the object, as the policies saw it.
	Subject *policy.Subject
	// Object is what was asked about, as it was read; zero at DELETE.
	Object workload.Object
	// Source says where the object was read.
	Source   string
	Answer   Answer
	Verdicts []Verdict
	// Rules are the rules that asked for no check, and those with a judge.
	Rules []policy.RuleResult
	// Reasons speak of the object as a whole: a rule that could not be asked, an
	// image that cannot be read.
	Reasons  []policy.Reason
	Warnings []policy.Reason
	// AuditAnnotations are words of policies for the audit log, by the policy's ID and
	// their key with a slash between.
	AuditAnnotations map[string]string
	// Patch is what mutation rules change, and then what pins the images whose policies
	// want it, where the request is PinHere; none unless the answer is allow.
	Patch []workload.Operation
	// Mutations is how many operations of Patch are those of mutation rules, and Changed
	// the object that they make; zero where they make nothing of it.
	Mutations int
	Changed   workload.Object
	// PolicyHash and TrustGeneration name the snapshot.
	PolicyHash, TrustGeneration, MirrorHash string
	Cost                                    Cost
	Duration                                time.Duration

	against Answer // what judges hold against the object itself
}

// Matched reports whether any policy speaks of the object or of an image of it.
func (o Outcome) Matched() bool {
	return slices.ContainsFunc(o.Verdicts, Verdict.Matched) || slices.ContainsFunc(o.Rules, func(r policy.RuleResult) bool {
		return r.Err != nil || r.Judge != nil || r.Exception != nil
	})
}

// Cost is what was asked of registries.
type Cost struct {
	Requests int64 `json:"requests"`
	// CountedPulls are the manifest GETs, which registries with pull limits
	// count.
	CountedPulls int64 `json:"countedPulls"`
	Bytes        int64 `json:"bytes"`
	// RateLimitRemaining is what the registry last said is left of its limit;
	// -1 where none said anything.
	RateLimitRemaining int64 `json:"rateLimitRemaining"`
}

// Add sums two costs; of the limits, the lower one is kept.
func (c Cost) Add(other Cost) Cost {
	c.Requests += other.Requests
	c.CountedPulls += other.CountedPulls
	c.Bytes += other.Bytes
	if other.RateLimitRemaining >= 0 && (c.RateLimitRemaining < 0 || other.RateLimitRemaining < c.RateLimitRemaining) {
		c.RateLimitRemaining = other.RateLimitRemaining
	}
	return c
}

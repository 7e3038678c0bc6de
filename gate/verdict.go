package gate

import (
	"cmp"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Result is the result for an image or an object.
type Result string

// The results, as every format writes them.
const (
	// Allow: at least one policy matches, and none denies.
	Allow Result = "allow"
	Deny  Result = "deny"
	// Error: the image could not be verified, and the policy does not admit that.
	Error Result = "error"
	// Unchecked: no policy matches. It is admitted.
	Unchecked Result = "unchecked"
)

// Admits reports whether the image or object may run: it is allowed or unchecked.
func (r Result) Admits() bool { return r == Allow || r == Unchecked }

// Compare orders results as the result of an object does: deny, error, allow, unchecked. An
// unknown result equals error, and an empty one follows all others.
func (r Result) Compare(other Result) int { return cmp.Compare(other.weight(), r.weight()) }

func (r Result) weight() int {
	switch r {
	case "":
		return 0
	case Unchecked:
		return 1
	case Allow:
		return 2
	case Deny:
		return 4
	default:
		return 3
	}
}

// First returns the first of the results in the order of Compare.
func First(a, b Result) Result {
	if b.Compare(a) < 0 {
		return b
	}
	return a
}

// Verdict is everything that was found out and decided about one image of an
// object. It is immutable.
type Verdict struct {
	Image policy.Image
	// Pinned is zero when no digest was asked for or found.
	Pinned image.Pinned
	Result Result
	// Reasons for the answer, the most telling first.
	Reasons []policy.Reason
	// Decisions of the checks, in the order of policies and rules; none if no policy matches.
	Decisions []policy.Decision
	// Warnings are failures that do not deny: under audit, or admitted by the
	// policy's failure setting.
	Warnings []policy.Reason
	// Redirect is the result of mirrors for the image; nil where none applies.
	Redirect *Redirect
	// Pin: a policy requires the reference to be pinned to the digest.
	Pin bool
	// Override is the ImageOverride that decided, with or without decisions of policies; nil
	// where none did.
	Override *policy.Override
	Cost     Cost
	Duration time.Duration

	allowance *policy.Overruling // that matches it, used or not
}

// Matched reports whether any policy matches the image.
func (v Verdict) Matched() bool { return len(v.Decisions) > 0 }

// Redirect is the result for an image that a mirror matches.
type Redirect struct {
	// Mirror names the document and the entry, as in RegistryMirror/hub[0].
	Mirror string
	// Target is the image at the mirror that serves the digest; zero where it stays
	// where it was written.
	Target image.Pinned
	// Attempts has an entry for each target in order; it is empty where no request was needed,
	// and Why then holds the reason.
	Attempts []redirect.Attempt
	Why      string
	// Other is the digest that the tag resolves to at the side whose answer does not count,
	// where it differs from Verdict.Pinned; else zero.
	Other image.Digest
	// PullSecrets are the Secrets that the pod is given for the target.
	PullSecrets []string
}

// Outcome is everything about one object.
type Outcome struct {
	// Subject is the object, as the policies saw it.
	Subject *policy.Subject
	// Object is the evaluated object, as it was read; zero at DELETE.
	Object workload.Object
	// Source is the origin of the object, such as a file.
	Source   string
	Result   Result
	Verdicts []Verdict
	// Rules are the rules that asked for no check, and those with a judge.
	Rules []policy.RuleResult
	// Reasons apply to the object as a whole: a failed rule, or an image reference that cannot
	// be parsed.
	Reasons  []policy.Reason
	Warnings []policy.Reason
	// AuditAnnotations are words of policies for the audit log, by the policy's ID and
	// their key with a slash between.
	AuditAnnotations map[string]string
	// Patch holds the operations of mutation rules, and then those that pin images, where
	// policies require it and the request is PinHere. It is empty unless the answer is allow.
	Patch []workload.Operation
	// Mutations is how many operations of Patch are those of mutation rules, and Changed
	// the object that they make; zero where they make nothing of it.
	Mutations int
	Changed   workload.Object
	// PolicyHash and TrustGeneration name the snapshot.
	PolicyHash, TrustGeneration, MirrorHash string
	Cost                                    Cost
	Duration                                time.Duration

	against Result // the judges' objections to the object itself
}

// Matched reports whether any policy matches the object or an image of it.
func (o Outcome) Matched() bool {
	return slices.ContainsFunc(o.Verdicts, Verdict.Matched) || slices.ContainsFunc(o.Rules, func(r policy.RuleResult) bool {
		return r.Err != nil || r.Judge != nil || r.Exception != nil || r.Kind != policy.ImageRule && r.Skip == ""
	})
}

// Cost counts the requests to registries.
type Cost struct {
	Requests int64 `json:"requests"`
	// CountedPulls are the manifest GETs, which registries with pull limits
	// count.
	CountedPulls int64 `json:"countedPulls"`
	Bytes        int64 `json:"bytes"`
	// RateLimitRemaining is the rest of the rate limit that the registry last reported; -1 for
	// none.
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

// fail takes an allowance back after an error.
func (v *Verdict) fail(reason policy.Reason) {
	if v.Result == Allow {
		v.Result, v.Pin, v.Reasons = Error, false, nil
	}
	v.Reasons = append(v.Reasons, reason)
}

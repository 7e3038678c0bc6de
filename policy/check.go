package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/verify"
)

// Action is the effect of a failed check.
type Action string

// The actions.
const (
	Enforce Action = "Enforce" // deny
	Warn    Action = "Warn"    // admit, tell who asks, and report
	Audit   Action = "Audit"   // admit and report
)

// Admits reports whether a failure under the action is admitted. An unknown
// action denies.
func (a Action) Admits() bool { return a == Warn || a == Audit }

// Platforms selects the manifests of a multi-platform image that must be verified.
type Platforms string

// The choices. A child that a verified index lists is always accepted.
const (
	PlatformIndex Platforms = ""     // the digest that the reference names; the default
	PlatformEach  Platforms = "each" // every platform that the index lists
	PlatformAny   Platforms = "any"  // the index, or at least one platform
)

// Data is how much of an image's own content a check reads.
type Data string

// The choices.
const (
	NoData   Data = ""
	DataOne  Data = "one"  // of the platform that a linux/amd64 node runs (image.Usual)
	DataEach Data = "each" // of every platform that the index lists
)

// Check holds the requirements of one entry of a rule for one image. All of its parts must hold.
// A check without requirements and attestations verifies no signature and concerns only the
// digest.
type Check struct {
	// Policy and Rule are set by Set.Plan.
	Policy *Policy
	Rule   string
	// Entry is the path of the entry in the rule, as in verifyImages[0].
	Entry string
	Image Image
	// Action is the effect of a failure.
	Action Action
	// Skip is the reason why the entry exempts an image that it matches; empty means that the
	// entry applies.
	Skip string
	// Unsure is the reason why it is indeterminate whether the rule applies, or which action a
	// failure has; nil if both are certain. A satisfied check passes in either reading, and a
	// failure is indeterminate.
	Unsure error
	// Exception is the exception that caused Skip; nil for any other cause.
	Exception *Exception
	// Properties are the author's words for reports, by key.
	Properties map[string]string
	// AtTag has the Skip and Exception for a reference with a digest to which its tag resolves; nil: none.
	AtTag *Check
	Claims
	// Judge makes the final decision, for all checks of the rule with the same one; nil if the
	// parts above decide. Set by Set.Plan.
	Judge Judge
	Lookup
	Pinning
	// Age bounds the age of the evidence, or of the image as a whole. Set by Set.Plan.
	Age age.Bounds
}

// Claims are the claims about an image that a check requires.
type Claims struct {
	// Requirements of signatures, which must all be met.
	Requirements []Requirement
	// Attestations must all be found, verified and satisfy their conditions.
	Attestations []Attestation
	// Asks are the questions of a Judge, in addition to those of the parts above.
	Asks []Question
	// Deny refuses when it holds for the predicates of all attestations
	// together, by their names; nil for none.
	Deny Condition
	// DenyMessage is the author's words for that.
	DenyMessage string
	// Required refuses an image without any verification.
	Required bool
}

// Pinning is the handling of an image's digest.
type Pinning struct {
	// MutateDigest pins the image to the verified digest.
	MutateDigest bool
	// VerifyDigest refuses an image that ends up without a digest.
	VerifyDigest bool
	// Named: the rule names the object's kind itself, so that the image is pinned in the object:
	// the verification of the resulting pods is not certain. Set by Set.Plan.
	Named bool
}

// Lookup defines where evidence is read, and how much of the image.
type Lookup struct {
	// WantsData requests the image's own manifests and configurations.
	WantsData Data
	Platforms Platforms
	// Sources are the evidence repositories; none means the image's own.
	Sources []attest.Source
	// Credentials are the registry credentials that the policy names.
	Credentials Credentials
}

// Credentials are a policy's settings for registry access.
type Credentials struct {
	// AllowInsecure permits plain HTTP and unverified TLS for the registry.
	AllowInsecure bool
	// Providers are credential helpers by name.
	Providers []string
	// Secrets are pull secrets, as namespace/name.
	Secrets []string
}

// Key identifies the credentials; empty for none.
func (c Credentials) Key() string {
	if !c.AllowInsecure && len(c.Providers)+len(c.Secrets) == 0 {
		return ""
	}
	return fmt.Sprintf("%t %q %q", c.AllowInsecure, c.Providers, c.Secrets)
}

// Requirement is a set of members, at least Threshold of which must have signed.
type Requirement struct {
	// Name is its path in the entry, as in attestors[0].
	Name      string
	Threshold int
	Members   []Member
}

// Member is an authority or a nested requirement; exactly one is set.
type Member struct {
	Authority *verify.Authority
	Set       *Requirement
	// Sources override the check's for this member.
	Sources []attest.Source
}

// Attestation is a statement that must be found: of the type, by the signers,
// and agreed with by the condition, all on one statement.
type Attestation struct {
	// Name is the variable that holds the predicate in Check.Deny; may be empty.
	Name string
	// Path is its place in the entry, as in attestations[0].
	Path string
	// PredicateType is the full URI. With Artifact it is an artifact type: the
	// statement is a referrer of that type which notation signed.
	PredicateType string
	Artifact      bool
	// Signers must all be met, by signatures on statements of the type.
	Signers []Requirement
	// Condition must hold for the predicate; nil for none.
	Condition Condition
	// LatestDecides: a statement does not count beside a later one, by the trusted time of
	// signing, that the same authority verified and the condition does not hold for.
	LatestDecides bool
}

// Condition is a compiled condition of a dialect's rule language.
type Condition interface {
	// Holds reports whether the condition holds for the data (a predicate, or predicates by
	// name). If it does not, why names the part that failed, with the expected and the found
	// value. An error means that the condition could not be evaluated.
	Holds(data any) (holds bool, why string, err error)
}

// TextCondition is a Condition that reads the JSON text of a predicate: float64 cannot represent
// all integers above 2^53.
type TextCondition interface {
	Condition
	// HoldsText is Holds for a predicate in JSON.
	HoldsText(predicate []byte) (holds bool, why string, err error)
}

// Validate refuses checks that could not be met or would mean nothing.
func (c *Check) Validate() error {
	var errs []error
	for i := range c.Requirements {
		errs = append(errs, c.Requirements[i].validate())
	}
	for i := range c.Attestations {
		a := &c.Attestations[i]
		if a.PredicateType == "" {
			errs = append(errs, fmt.Errorf("%s: the type is empty", a.Path))
		}
		if len(a.Signers) == 0 {
			errs = append(errs, fmt.Errorf("%s: without attestors any signer would be accepted", a.Path))
		}
		for j := range a.Signers {
			errs = append(errs, a.Signers[j].validate())
		}
	}
	if c.Judge == nil && len(c.Asks) > 0 {
		errs = append(errs, errors.New("without Judge, Asks must be empty"))
	}
	if c.Judge != nil && c.Platforms != PlatformIndex {
		errs = append(errs, errors.New("a rule with expressions is evaluated for the reference, not for its platforms"))
	}
	for i := range c.Asks {
		if c.Asks[i].Authority == nil {
			errs = append(errs, errors.New("a question names no authority"))
		} else if err := c.Asks[i].Authority.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", c.Entry, err)
	}
	return nil
}

func (r *Requirement) validate() error {
	if len(r.Members) == 0 {
		return fmt.Errorf("%s: no entries", r.Name)
	}
	if r.Threshold < 1 || r.Threshold > len(r.Members) {
		return fmt.Errorf("%s: %d of %d entries can never be met as meant", r.Name, r.Threshold, len(r.Members))
	}
	for _, m := range r.Members {
		switch {
		case (m.Authority == nil) == (m.Set == nil):
			return fmt.Errorf("%s: an entry wants an authority or a nested set", r.Name)
		case m.Authority != nil:
			if err := m.Authority.Validate(); err != nil {
				return err
			}
		default:
			if err := m.Set.validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// NeedsDigest reports whether the check needs the image's digest from a registry.
func (c *Check) NeedsDigest() bool {
	return c.Skip == "" && (c.NeedsProof() || c.WantsData != NoData || c.MutateDigest && c.Image.Ref.Digest().IsZero())
}

// NeedsProof reports whether the check requires signatures or attestations.
func (c *Check) NeedsProof() bool {
	return c.Skip == "" && len(c.Requirements)+len(c.Attestations)+len(c.Asks) > 0
}

// Dated returns the answers without the evidence that is older than the check's maximum age, or of unknown age, and
// whether some was left out so far. With such evidence the check must pass, too: it may stand against the image.
func (c *Check) Dated(answers Answers) (dated Answers, isLess func() bool) {
	less := false
	if c.Age.Maximum == 0 || c.Age.Whole || answers == nil {
		return answers, func() bool { return less }
	}
	return func(q Question) Answer {
		answer := answers(q)
		fresh, old, unknown := c.Age.Fresh(answer.Facts)
		less = less || len(fresh) < len(answer.Facts)
		answer.Facts, answer.Rejections = fresh, slices.Concat(answer.Rejections, old)
		if unknown != nil {
			answer.Gaps = append(slices.Clip(answer.Gaps), unknown)
		}
		return answer
	}, func() bool { return less }
}

// Questions returns the required claim queries, one for each authority and kind of claim.
func (c *Check) Questions() []Question {
	if c.Skip != "" {
		return nil
	}
	questions := slices.Clone(c.Asks)
	for i := range c.Requirements {
		questions = c.Requirements[i].questions(questions, c.SignatureQuestion())
	}
	for i := range c.Attestations {
		a := &c.Attestations[i]
		for j := range a.Signers {
			questions = a.Signers[j].questions(questions, c.StatementQuestion(a))
		}
	}
	return questions
}

func (r *Requirement) questions(into []Question, about Question) []Question {
	for _, m := range r.Members {
		if m.Set != nil {
			into = m.Set.questions(into, about)
			continue
		}
		into = append(into, about.By(m))
	}
	return into
}

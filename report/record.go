package report

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/workload"
)

// The version and kind of a List. Fields are added within a version, and never removed or
// redefined.
const (
	APIVersion = "quaymaster.dev/v1alpha2"
	Kind       = "VerdictList"
)

// List is the document that JSON writes; docs/record.md describes every field.
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Summary    Summary  `json:"summary"`
	Items      []Record `json:"items"`
	// Error is the reason why there are no decisions; empty otherwise.
	Error string `json:"error,omitempty"`
	// Flags are the flags of the run that were not on its command line.
	Flags []Flag `json:"flags,omitempty"`
}

// Flag is a flag of a command with the source of its value.
type Flag struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	Source string   `json:"source"` // an environment variable or a file
}

// Record is the decision on one object, with its reasons.
type Record struct {
	Object Object      `json:"object"`
	Result gate.Result `json:"result"`
	// Images are in the order of their paths in the object.
	Images []Image `json:"images"`
	// Rules are the rules without image checks, in the order of policies.
	Rules []Rule `json:"rules,omitempty"`
	// Reasons and Warnings apply to the object as a whole.
	Reasons         []policy.Reason `json:"reasons,omitempty"`
	Warnings        []policy.Reason `json:"warnings,omitempty"`
	PolicySetHash   string          `json:"policySetHash"`
	TrustGeneration string          `json:"trustGeneration"`
	// MirrorSetHash identifies the content of the mirrors; empty where there are none.
	MirrorSetHash string `json:"mirrorSetHash,omitempty"`
	Cost          Cost   `json:"cost"`
	// DurationMilliseconds is rounded to a microsecond.
	DurationMilliseconds float64 `json:"durationMilliseconds"`

	unmatched bool            // a document that no policy matches
	read      workload.Object // of an object from a file; zero otherwise
}

// PositionOf returns the line of the value at a JSON pointer (RFC 6901) of the object; nil if
// unknown.
func (r *Record) PositionOf(pointer string) *workload.Position { return written(r.read, pointer) }

// spoken counts the rules with a result for the object.
func (r Record) spoken() int {
	n := 0
	for _, rule := range r.Rules {
		if rule.speaks() {
			n++
		}
	}
	return n
}

// Object identifies the evaluated object.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Source is the file of the object; empty for an image without an object. A document that is
	// not a Kubernetes object has only this field.
	Source string `json:"source,omitempty"`
	// Position is the object's first line; nil where it was not read from a file or stream.
	Position *workload.Position `json:"position,omitempty"`
	// Template is the template of a rendered manifest, from its first comment.
	Template string `json:"template,omitempty"`
}

// Image is the verdict on one image of the object.
type Image struct {
	Container string `json:"container,omitempty"`
	// Role is container, init, ephemeral, volume or custom.
	Role string `json:"role,omitempty"`
	// Pointer is the path of the reference (RFC 6901), and Position its line in the file.
	// Position is nil if unknown, or if a policy set the reference.
	Pointer  string             `json:"pointer,omitempty"`
	Position *workload.Position `json:"position,omitempty"`
	// Written is the reference as written, and Reference its normalised form.
	Written   string `json:"written"`
	Reference string `json:"reference"`
	// Digest is the resolved digest, and Pinned the exact name. Both are empty where no digest
	// was requested or found.
	Digest image.Digest `json:"digest,omitzero"`
	Pinned string       `json:"pinned,omitempty"`
	// Pin: a policy requires the reference to be replaced by Pinned.
	Pin bool `json:"pin"`
	// Mirror is the redirection by mirrors; nil where none matches.
	Mirror *Mirror     `json:"mirror,omitempty"`
	Result gate.Result `json:"result"`
	// Matched: a policy matches the image.
	Matched bool `json:"matched"`
	// Override is the ImageOverride that decided, with or against the policies, as kind/name;
	// empty where there is none.
	Override string `json:"override,omitempty"`
	// Reasons for the answer, the most relevant first.
	Reasons  []policy.Reason `json:"reasons"`
	Warnings []policy.Reason `json:"warnings,omitempty"`
	// Decisions in the order of policies, rules and entries.
	Decisions            []Decision `json:"decisions"`
	Cost                 Cost       `json:"cost"`
	DurationMilliseconds float64    `json:"durationMilliseconds"`
}

// Mirror is the redirection of an image that a mirror matches.
type Mirror struct {
	// Name is the document and the entry, as in RegistryMirror/hub[0].
	Name string `json:"name"`
	// Target is the exact name at the chosen mirror; empty where the image is not redirected.
	Target string `json:"target,omitempty"`
	// Attempts has an entry for each target in order. It is empty where no target was tried; Why
	// is the reason then.
	Attempts []Attempt `json:"attempts"`
	Why      string    `json:"why,omitempty"`
	// OtherDigest is the digest of the tag on the side that is not authoritative, where it
	// differs from the image's digest.
	OtherDigest image.Digest `json:"otherDigest,omitzero"`
	// PullSecrets are the Secrets that the pod gets for the target.
	PullSecrets []string `json:"pullSecrets,omitempty"`
}

// Attempt is the response of one target.
type Attempt struct {
	Target string         `json:"target"`
	State  redirect.State `json:"state"`
	// TagDigest is the digest that the target's tag resolves to.
	TagDigest image.Digest `json:"tagDigest,omitzero"`
	// Error is the reason why the target could not be read.
	Error string `json:"error,omitempty"`
	// DurationMilliseconds is rounded to a microsecond; 0 for a cached response.
	DurationMilliseconds float64 `json:"durationMilliseconds"`
}

// Decision is the result of one entry of a rule.
type Decision struct {
	Policy Policy `json:"policy"`
	Rule   string `json:"rule"`
	Entry  string `json:"entry,omitempty"`
	// JudgedAs is the source's name that the entry matches, where the object names a mirror's
	// copy of it.
	JudgedAs string        `json:"evaluatedAs,omitempty"`
	Action   policy.Action `json:"action"`
	Result   policy.Result `json:"result"`
	// Effect is the effect of the result on the image's result.
	Effect  Effect          `json:"effect"`
	Reasons []policy.Reason `json:"reasons"`
	// Exception exempts the image; nil where there is none.
	Exception *Exception `json:"exception,omitempty"`
	// Proofs are the claims that satisfied the entry's requirements, sorted by role, predicate
	// type, signer and location.
	Proofs []Proof `json:"proofs,omitempty"`
}

// Exception is an applied policy exception.
type Exception struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Expires is the end of the exception; absent where it has none.
	Expires time.Time `json:"expires,omitzero"`
	// Reason is the justification by the exception's author.
	Reason string `json:"reason,omitempty"`
	// AsPass: the exception has the object reported as passed (reportResult: pass).
	AsPass bool `json:"asPass,omitempty"`
}

// String returns one line, as in "a/b, until 2027-01-31T00:00:00Z: being replaced". Untrusted
// text in it is not escaped.
func (e Exception) String() string {
	text := e.Name
	if e.Expires.IsZero() {
		text += ", without an end"
	} else {
		text += ", until " + e.Expires.Format(time.RFC3339)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Effect is the effect of a decision on the result of the image.
type Effect string

// The effects.
const (
	EffectAllow Effect = "allow"
	EffectDeny  Effect = "deny"
	EffectError Effect = "error"
	EffectWarn  Effect = "warn" // a failure that is not enforced, or that an override outweighs
)

// Policy identifies a policy by its content.
type Policy struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Source    string `json:"source,omitempty"`
	// Hash is the SHA-256 of the document, in hexadecimal.
	Hash string `json:"hash"`
	// FailOpen: an image that could not be verified is admitted (failurePolicy Ignore).
	FailOpen bool `json:"failOpen"`
	// AuditedBy is the setting that has the policy audited instead of enforced, as
	// policies.audit; empty where there is none.
	AuditedBy string `json:"auditedBy,omitempty"`
}

// String returns kind/name or kind/namespace/name.
func (p Policy) String() string {
	full := policy.Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
	return full.ID()
}

// Rule is a rule without image checks on the object.
type Rule struct {
	Policy Policy `json:"policy"`
	Rule   string `json:"rule"`
	// Kind is mutate or validate for rules on objects; empty for those on images.
	Kind policy.RuleKind `json:"kind,omitempty"`
	// Skipped is the reason why the rule does not apply.
	Skipped string `json:"skipped,omitempty"`
	// Exception exempts the object; nil where there is none.
	Exception *Exception `json:"exception,omitempty"`
	// Error is the reason why the rule could not be evaluated.
	Error string `json:"error,omitempty"`
	// Result is the result for the object itself: pass, fail or indeterminate. Empty where there is
	// none.
	Result policy.Result `json:"result,omitempty"`
	// Action is the effect of a failure of a rule on objects.
	Action  policy.Action   `json:"action,omitempty"`
	Reasons []policy.Reason `json:"reasons,omitempty"`
	// Changed: the rule mutated the object.
	Changed bool `json:"changed,omitempty"`
	// Properties are added to reports by the rule's author.
	Properties map[string]string `json:"properties,omitempty"`
}

// speaks reports whether the rule has a result for the object.
func (r Rule) speaks() bool { return r.Kind != policy.ImageRule && r.Skipped == "" }

// Proof is one claim that was verified by one signature.
type Proof struct {
	// Role is signature or attestation, and Format the encoding of the evidence: cosign, bundle
	// or notation.
	Role   string `json:"role"`
	Format string `json:"format"`
	// Digest is the subject of the claim: the image, its index, or a platform.
	Digest        image.Digest      `json:"digest,omitzero"`
	PredicateType string            `json:"predicateType,omitempty"`
	Signer        verify.Signer     `json:"signer"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	// LogEntries are the verified transparency log entries.
	LogEntries []verify.LogEntry `json:"logEntries,omitempty"`
	// SignedAt is the earliest trusted time of signing, by TimeSource: log, timestamp or signer.
	// ExpiresAt is the end of the proof's validity.
	SignedAt   time.Time         `json:"signedAt,omitzero"`
	TimeSource verify.TimeSource `json:"timeSource,omitempty"`
	ExpiresAt  time.Time         `json:"expiresAt,omitzero"`
	// Notes are failed checks that only require a note.
	Notes []string `json:"notes,omitempty"`
	Found Found    `json:"found"`
}

// Found is the location of evidence.
type Found struct {
	Repository string `json:"repository,omitempty"`
	// Via is the tag, or "referrers".
	Via string `json:"via,omitempty"`
	// Manifest is the digest of the manifest that carries the evidence.
	Manifest image.Digest `json:"manifest,omitzero"`
}

// Cost is the cost of requests to registries.
type Cost struct {
	Requests     int64 `json:"requests"`
	CountedPulls int64 `json:"countedPulls"`
	Bytes        int64 `json:"bytes"`
	// RateLimitRemaining is the last remaining number of pulls that the registry reported; nil
	// where it reported none.
	RateLimitRemaining *int64 `json:"rateLimitRemaining,omitempty"`
}

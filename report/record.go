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

// The version and kind of a List. Fields are added within a version, and never
// removed or given another meaning.
const (
	APIVersion = "quaymaster.dev/v1alpha1"
	Kind       = "VerdictList"
)

// List is the document that JSON writes; docs/record.md describes every field.
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Summary    Summary  `json:"summary"`
	Items      []Record `json:"items"`
	// Error says why nothing was decided; empty where something was.
	Error string `json:"error,omitempty"`
}

// Record is what was decided about one object and why.
type Record struct {
	Object Object      `json:"object"`
	Answer gate.Answer `json:"answer"`
	// Images in the order of their places in the object.
	Images []Image `json:"images"`
	// Rules are the rules that asked for no check, in the order of policies.
	Rules []Rule `json:"rules,omitempty"`
	// Reasons and Warnings speak of the object as a whole.
	Reasons         []policy.Reason `json:"reasons,omitempty"`
	Warnings        []policy.Reason `json:"warnings,omitempty"`
	PolicySetHash   string          `json:"policySetHash"`
	TrustGeneration string          `json:"trustGeneration"`
	// MirrorSetHash names the content of the mirrors; empty where there are none.
	MirrorSetHash string `json:"mirrorSetHash,omitempty"`
	Cost          Cost   `json:"cost"`
	// DurationMilliseconds is rounded to a microsecond.
	DurationMilliseconds float64 `json:"durationMilliseconds"`

	unmatched bool            // a document that no policy speaks of
	read      workload.Object // where it was read from a file; else nothing is kept of it
}

// PositionOf returns where the value at a JSON pointer (RFC 6901) of the object is
// written; nil where nobody knows.
func (r *Record) PositionOf(pointer string) *workload.Position { return written(r.read, pointer) }

// spoken counts the rules that said something of the object.
func (r Record) spoken() int {
	n := 0
	for _, rule := range r.Rules {
		if rule.speaks() {
			n++
		}
	}
	return n
}

// Object names the object that was judged.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Source says where it was read; empty for an image that was named alone. Of a
	// document that is no Kubernetes object it is all that there is.
	Source string `json:"source,omitempty"`
	// Position is where it begins; nil where it was not read from a file or stream.
	Position *workload.Position `json:"position,omitempty"`
	// Template is what the manifest was rendered from, as its first comment says.
	Template string `json:"template,omitempty"`
}

// Image is the verdict on one image of the object.
type Image struct {
	Container string `json:"container,omitempty"`
	// Role is container, init, ephemeral, volume or custom.
	Role string `json:"role,omitempty"`
	// Pointer is where the reference is written (RFC 6901), Position where that is in
	// the file; nil where nobody knows, or where a policy put the reference there.
	Pointer  string             `json:"pointer,omitempty"`
	Position *workload.Position `json:"position,omitempty"`
	// Written is the reference as it stands there, Reference what it means.
	Written   string `json:"written"`
	Reference string `json:"reference"`
	// Digest is what the reference was resolved to, and Pinned the exact name;
	// both are empty where no digest was asked for or found.
	Digest image.Digest `json:"digest,omitzero"`
	Pinned string       `json:"pinned,omitempty"`
	// Pin says that a policy wants the reference replaced by Pinned.
	Pin bool `json:"pin"`
	// Mirror is what mirrors made of it; nil where none speaks of it.
	Mirror *Mirror     `json:"mirror,omitempty"`
	Answer gate.Answer `json:"answer"`
	// Matched says that a policy speaks of the image.
	Matched bool `json:"matched"`
	// Override is the ImageOverride that decided, against what policies say or beside
	// them, as kind/name; empty where none did.
	Override string `json:"override,omitempty"`
	// Reasons for the answer, the most telling first.
	Reasons  []policy.Reason `json:"reasons"`
	Warnings []policy.Reason `json:"warnings,omitempty"`
	// Decisions in the order of policies, rules and entries.
	Decisions            []Decision `json:"decisions"`
	Cost                 Cost       `json:"cost"`
	DurationMilliseconds float64    `json:"durationMilliseconds"`
}

// Mirror is what became of an image that a mirror speaks of.
type Mirror struct {
	// Name is the document and the entry, as in RegistryMirror/hub[0].
	Name string `json:"name"`
	// Target is the exact name at the mirror that was chosen; empty where the image
	// stays where it was written.
	Target string `json:"target,omitempty"`
	// Attempts has an entry for each target in order; none where none was to be
	// asked, and then Why says why.
	Attempts []Attempt `json:"attempts"`
	Why      string    `json:"why,omitempty"`
	// OtherDigest is what the tag stands for at the side whose answer does not
	// count, where it differs from the image's digest.
	OtherDigest image.Digest `json:"otherDigest,omitzero"`
	// PullSecrets are the Secrets that the pod is given for the target.
	PullSecrets []string `json:"pullSecrets,omitempty"`
}

// Attempt is what one target answered.
type Attempt struct {
	Target string         `json:"target"`
	State  redirect.State `json:"state"`
	// TagDigest is the digest that the target's tag stands for.
	TagDigest image.Digest `json:"tagDigest,omitzero"`
	// Error says why it could not be looked at.
	Error string `json:"error,omitempty"`
	// DurationMilliseconds is rounded to a microsecond; 0 where memory knew.
	DurationMilliseconds float64 `json:"durationMilliseconds"`
}

// Decision is what one entry of a rule came to.
type Decision struct {
	Policy Policy `json:"policy"`
	Rule   string `json:"rule"`
	Entry  string `json:"entry,omitempty"`
	// JudgedAs is the source's name that the entry speaks of, where the object names
	// a mirror's copy of it.
	JudgedAs string        `json:"judgedAs,omitempty"`
	Action   policy.Action `json:"action"`
	Result   policy.Result `json:"result"`
	// Effect is what the result does to the image's answer.
	Effect  Effect          `json:"effect"`
	Reasons []policy.Reason `json:"reasons"`
	// Exception is what leaves the image alone; nil where none does.
	Exception *Exception `json:"exception,omitempty"`
	// Proofs are the claims that met the entry's requirements, sorted by role,
	// predicate type, signer and place.
	Proofs []Proof `json:"proofs,omitempty"`
}

// Exception is a policy exception that was used.
type Exception struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Expires is when it ends; absent where it has no end.
	Expires time.Time `json:"expires,omitzero"`
	// Reason is why there is one, in its author's words.
	Reason string `json:"reason,omitempty"`
	// AsPass: its author has the object reported as passed (reportResult: pass).
	AsPass bool `json:"asPass,omitempty"`
}

// String returns one line about it, as in "a/b, until 2027-01-31T00:00:00Z: being
// replaced". What strangers chose in it is as it was written.
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

// Effect is what a decision does to the answer.
type Effect string

// The effects.
const (
	EffectAllow  Effect = "allow"
	EffectDeny   Effect = "deny"
	EffectUnable Effect = "unable"
	EffectWarn   Effect = "warn" // a failure that does not deny, or that an override outweighs
)

// Policy names a policy by its content.
type Policy struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Source    string `json:"source,omitempty"`
	// Hash is the SHA-256 of the document, in hexadecimal.
	Hash string `json:"hash"`
	// FailOpen says that could-not-look admits (failurePolicy Ignore).
	FailOpen bool `json:"failOpen"`
	// AuditedBy says who has the policy audit, whatever it says itself, as the setting
	// policies.audit; empty: nobody.
	AuditedBy string `json:"auditedBy,omitempty"`
}

// String returns kind/name or kind/namespace/name.
func (p Policy) String() string {
	full := policy.Policy{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
	return full.ID()
}

// Rule is a rule that asked for no check of the object.
type Rule struct {
	Policy Policy `json:"policy"`
	Rule   string `json:"rule"`
	// Kind is mutate or validate for rules about objects; empty for those about images.
	Kind policy.RuleKind `json:"kind,omitempty"`
	// Skipped says why the rule does not apply.
	Skipped string `json:"skipped,omitempty"`
	// Exception is what leaves the object alone; nil where none does.
	Exception *Exception `json:"exception,omitempty"`
	// Error says why the rule could not be asked.
	Error string `json:"error,omitempty"`
	// Result is what the rule says of the object itself: pass, fail or undecided.
	// Empty where it says nothing of it.
	Result policy.Result `json:"result,omitempty"`
	// Action is what a failure of a rule about objects does.
	Action  policy.Action   `json:"action,omitempty"`
	Reasons []policy.Reason `json:"reasons,omitempty"`
	// Changed: the rule changed the object.
	Changed bool `json:"changed,omitempty"`
	// Properties are its author's words for reports.
	Properties map[string]string `json:"properties,omitempty"`
}

// speaks reports whether the rule said something of the object.
func (r Rule) speaks() bool { return r.Kind != policy.ImageRule && r.Skipped == "" }

// Proof is one claim that was proved, by one signature.
type Proof struct {
	// Role is signature or attestation, Format how the evidence is encoded:
	// cosign, bundle or notation.
	Role   string `json:"role"`
	Format string `json:"format"`
	// Digest is what the claim is about: the image, its index, or a platform.
	Digest        image.Digest      `json:"digest,omitzero"`
	PredicateType string            `json:"predicateType,omitempty"`
	Signer        verify.Signer     `json:"signer"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	// LogEntries are the transparency log entries that were proved.
	LogEntries []verify.LogEntry `json:"logEntries,omitempty"`
	// SignedAt is the earliest trusted time of signing, ExpiresAt when the proof
	// stops being one.
	SignedAt  time.Time `json:"signedAt,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Notes are checks that failed and were only to be noted.
	Notes []string `json:"notes,omitempty"`
	Found Found    `json:"found"`
}

// Found says where evidence was found.
type Found struct {
	Repository string `json:"repository,omitempty"`
	// Via is the tag, or "referrers".
	Via string `json:"via,omitempty"`
	// Manifest is the digest of the manifest that carries the evidence.
	Manifest image.Digest `json:"manifest,omitzero"`
}

// Cost is what was asked of registries.
type Cost struct {
	Requests     int64 `json:"requests"`
	CountedPulls int64 `json:"countedPulls"`
	Bytes        int64 `json:"bytes"`
	// RateLimitRemaining is what the registry last said is left of its limit of
	// pulls; nil where none said anything.
	RateLimitRemaining *int64 `json:"rateLimitRemaining,omitempty"`
}

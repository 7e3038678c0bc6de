package compare

import (
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Engine is a policy engine or another source of verdicts.
type Engine string

// The engines.
const (
	Quaymaster       Engine = "quaymaster"
	Kyverno          Engine = "kyverno"
	PolicyController Engine = "policy-controller"
	Connaisseur      Engine = "connaisseur"
	// APIServer reports that a request was admitted, whichever webhooks were called.
	APIServer Engine = "api-server"
)

// engineOf returns the engine of a webhook by the webhook's name.
func engineOf(webhook string) (Engine, bool) {
	switch {
	case strings.Contains(webhook, ".kyverno.svc"), strings.HasSuffix(webhook, ".kyverno.io"):
		return Kyverno, true
	case strings.HasSuffix(webhook, "policy.sigstore.dev"):
		return PolicyController, true
	case strings.Contains(webhook, "connaisseur"):
		return Connaisseur, true
	case strings.Contains(webhook, "quaymaster"):
		return Quaymaster, true
	}
	return "", false
}

// Verdict is a verdict.
type Verdict string

// The verdicts. An image that could not be verified is neither signed nor unsigned.
const (
	Admit Verdict = "admit"
	Deny  Verdict = "deny"
	Error Verdict = "error"
)

// severity orders verdicts, the most severe last.
func (w Verdict) severity() int { return slices.Index([]Verdict{Admit, Error, Deny}, w) }

// Place is the record that a verdict was read from.
type Place string

// The records.
const (
	InReport      Place = "report"
	InEvent       Place = "event"
	InAuditLog    Place = "audit log"
	InDecisionLog Place = "decision log"
)

// policyName is the policy of a verdict. Kind and Namespace may be unknown.
type policyName struct{ kind, namespace, name string }

func (p policyName) String() string {
	id := p.name
	for _, before := range []string{p.namespace, p.kind} {
		if before != "" {
			id = before + "/" + id
		}
	}
	return id
}

// isSame reports whether two names may refer to one policy.
func (p policyName) isSame(other policyName) bool {
	return p.name == other.name && (p.kind == "" || other.kind == "" || p.kind == other.kind) &&
		(p.namespace == other.namespace || p.kind == "" || other.kind == "")
}

// A verdict of one engine.
type engineVerdict struct {
	engine Engine
	object report.Resource
	policy policyName // no name: the policy is unknown
	rule   string
	// written is the image and container its container; empty for a verdict on the object, or
	// where the image is not recorded.
	container, written, digest string
	verdict                    Verdict
	// audited: the rule is audited, and a failure denies no request.
	audited bool
	// skipped: the rule does not match the object.
	skipped       bool
	code, message string
	at            time.Time
	where         Place
	stale         bool
}

// id identifies a verdict; only the newest verdict of an id counts.
type id struct {
	engine       Engine
	object       string
	policy, rule string
	image        string
}

func (s *engineVerdict) id() id {
	return id{engine: s.engine, object: identity(s.object), policy: s.policy.namespace + "/" + s.policy.name,
		rule: baseRule(s.rule), image: s.container + "\x00" + s.written}
}

// isNewer reports whether a verdict replaces another of the same id. Of two verdicts of one time
// the more severe one counts.
func (s *engineVerdict) isNewer(than *engineVerdict) bool {
	if !s.at.Equal(than.at) {
		return s.at.After(than.at)
	}
	return s.verdict.severity() > than.verdict.severity()
}

// identity is the UID in its namespace, or the whole name without a UID. The namespace is
// included because a user with write access to one namespace can forge any UID there.
func identity(of report.Resource) string {
	if of.UID != "" {
		return of.Namespace + "/" + of.UID
	}
	name := nameOf(of.Kind, of.Namespace, of.Name)
	if of.Name == "" && of.Owner != nil {
		name += " of " + nameOf(of.Owner.Kind, of.Namespace, of.Owner.Name)
	}
	return name
}

func nameOf(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// baseRule is the rule for pods from which Kyverno generated a rule for their controllers.
func baseRule(rule string) string {
	for _, prefix := range []string{"autogen-cronjobs-", "autogen-cronjob-", "autogen-"} {
		if base, ok := strings.CutPrefix(rule, prefix); ok && base != "" {
			return base
		}
	}
	return rule
}

// isSameRule reports whether two rules may be the same. A verdict without a rule, or with the
// policy in its place, matches all rules.
func isSameRule(a, b *engineVerdict) bool {
	one, other := baseRule(a.rule), baseRule(b.rule)
	return one == other || one == "" || other == "" || one == a.policy.name || other == b.policy.name
}

// wordOf returns the verdict for a reason code, which is an error where the image could not be
// verified.
func wordOf(word Verdict, code string) Verdict {
	unlooked := []policy.Code{
		policy.ImageNotFound, policy.AccessRefused, policy.Unavailable, policy.TooMuch, policy.Contradiction, policy.PolicyError,
		policy.CannotProve, policy.TimedOut, policy.Internal,
	}
	if word == Deny && slices.Contains(unlooked, policy.Code(code)) {
		return Error
	}
	return word
}

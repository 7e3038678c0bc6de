package compare

import (
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Engine is who says something.
type Engine string

// The engines.
const (
	Quaymaster       Engine = "quaymaster"
	Kyverno          Engine = "kyverno"
	PolicyController Engine = "policy-controller"
	Connaisseur      Engine = "connaisseur"
	// APIServer says that a request came through, whoever was asked about it.
	APIServer Engine = "api-server"
)

// engineOf returns whose a webhook is, by its name.
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

// Word is a verdict.
type Word string

// The words. An image that nobody could look at is neither signed nor unsigned.
const (
	Admit  Word = "admit"
	Deny   Word = "deny"
	Unable Word = "unable"
)

// severity orders words: what asks for most attention last.
func (w Word) severity() int { return slices.Index([]Word{Admit, Unable, Deny}, w) }

// Place says where a verdict was read.
type Place string

// The places.
const (
	InReport      Place = "report"
	InEvent       Place = "event"
	InAuditLog    Place = "audit log"
	InDecisionLog Place = "decision log"
)

// policyName is what a verdict says of its policy; Kind and Namespace may be unknown.
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

// isSame reports whether two names may be of one policy.
func (p policyName) isSame(other policyName) bool {
	return p.name == other.name && (p.kind == "" || other.kind == "" || p.kind == other.kind) &&
		(p.namespace == other.namespace || p.kind == "" || other.kind == "")
}

// said is one verdict of one engine.
type said struct {
	engine Engine
	object report.Resource
	policy policyName // without a name: of no policy that is known
	rule   string
	// written is the image, and container whose it is; empty where it is about the
	// object, or where nobody says which image.
	container, written, digest string
	word                       Word
	// onlyTold: a failure denies nobody.
	onlyTold bool
	// skipped: the rule leaves the object alone.
	skipped       bool
	code, message string
	at            time.Time
	where         Place
	stale         bool
}

// id is what the newest of several verdicts counts of.
type id struct {
	engine       Engine
	object       string
	policy, rule string
	image        string
}

func (s *said) id() id {
	return id{engine: s.engine, object: identity(s.object), policy: s.policy.namespace + "/" + s.policy.name, rule: baseRule(s.rule), image: s.container + "\x00" + s.written}
}

// isNewer reports whether a verdict replaces another of the same id. Of two of one time
// the one that asks for more attention counts.
func (s *said) isNewer(than *said) bool {
	if !s.at.Equal(than.at) {
		return s.at.After(than.at)
	}
	return s.word.severity() > than.word.severity()
}

// identity is the UID in its namespace, since who may write in one may name any UID; or
// without one the whole name.
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

// baseRule is the rule about pods that one about their controllers follows from, in
// Kyverno's dialects.
func baseRule(rule string) string {
	for _, prefix := range []string{"autogen-cronjobs-", "autogen-cronjob-", "autogen-"} {
		if base, ok := strings.CutPrefix(rule, prefix); ok && base != "" {
			return base
		}
	}
	return rule
}

// isSameRule reports whether two rules may be one: who names none, or its policy in place
// of it, speaks of all.
func isSameRule(a, b *said) bool {
	one, other := baseRule(a.rule), baseRule(b.rule)
	return one == other || one == "" || other == "" || one == a.policy.name || other == b.policy.name
}

// wordOf returns the word for a code that says that nobody could look.
func wordOf(word Word, code string) Word {
	unlooked := []policy.Code{
		policy.ImageNotFound, policy.AccessRefused, policy.Unavailable, policy.TooMuch, policy.Contradiction, policy.PolicyError,
		policy.CannotProve, policy.TimedOut, policy.Internal,
	}
	if word == Deny && slices.Contains(unlooked, policy.Code(code)) {
		return Unable
	}
	return word
}

package recall

import (
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/verify"
)

// Decided calls do with each admission decision of a log, in the order of the log, until do
// returns an error. Scan results are left out, since the next scan repeats them. A line
// identifies its policy by ID alone, so policies resolves it. nil means that the policy no longer
// exists, and its results are left out.
func Decided(from Source, policies func(id string) *policy.Policy, do func(report.Decided) error) error {
	if policies == nil || do == nil {
		return errors.New("recall: policies and do must not be nil")
	}
	return from.each(func(lines []decisionlog.Entry) error {
		first := lines[0].Decision
		if first.Process != report.ProcessAdmission || first.Undecided != "" {
			return nil
		}
		return do(report.Decided{Occasion: occasionOf(&lines[0]), Outcome: outcomeOf(lines, policies)})
	})
}

// outcomeOf joins the lines of one object to an outcome.
func outcomeOf(lines []decisionlog.Entry, policies func(id string) *policy.Policy) gate.Outcome {
	first := lines[0].Decision
	o := gate.Outcome{
		Subject: subjectOf(first), Result: gate.Unchecked,
		PolicyHash: first.PolicySet, TrustGeneration: first.Trust, MirrorHash: first.Mirrors,
	}
	for i := range lines {
		d := lines[i].Decision
		o.Result = gate.First(o.Result, d.Result)
		if d.Image != nil {
			if v, ok := verdictOf(d, policies); ok {
				o.Verdicts = append(o.Verdicts, v)
			}
			continue
		}
		o.Reasons, o.Warnings = reasonsOf(d.Reasons), reasonsOf(d.Warnings)
		for k := range d.Rules {
			if p := policies(d.Rules[k].Policy); p != nil {
				o.Rules = append(o.Rules, ruleResultOf(&d.Rules[k], p))
			}
		}
	}
	return o
}

// subjectOf returns the object. A line has only its names.
func subjectOf(d *decisionlog.Decision) *policy.Subject {
	of := &d.Object
	group, version, grouped := strings.Cut(of.APIVersion, "/")
	if !grouped {
		group, version = "", of.APIVersion
	}
	metadata := map[string]any{"namespace": of.Namespace, "name": of.Name}
	if of.UID != "" {
		metadata["uid"] = of.UID
	}
	if o := of.Owner; o != nil {
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": o.UID, "controller": true}}
	}
	return &policy.Subject{
		Group: group, Version: version, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, Operation: d.Operation,
		Object: policy.ContentOf(map[string]any{"apiVersion": of.APIVersion, "kind": of.Kind, "metadata": metadata}),
	}
}

// verdictOf returns a line's verdict on an image, and false where the image's name is invalid.
func verdictOf(d *decisionlog.Decision, policies func(id string) *policy.Policy) (gate.Verdict, bool) {
	ref, err := image.Parse(d.Image.Written)
	if err != nil {
		return gate.Verdict{}, false
	}
	v := gate.Verdict{
		Image: policy.Image{Container: d.Image.Container, Ref: ref}, Result: d.Result,
		Reasons: reasonsOf(d.Reasons), Warnings: reasonsOf(d.Warnings), Override: overrideOf(d),
	}
	if digest, err := image.ParseDigest(d.Image.Digest); err == nil {
		if pinned, err := ref.Pin(image.Descriptor{Digest: digest}); err == nil {
			v.Pinned = pinned
		}
	}
	for i := range d.Rules {
		r := &d.Rules[i]
		p := policies(r.Policy)
		if p == nil {
			continue
		}
		decision := policy.Decision{
			Check:  &policy.Check{Policy: asLogged(p, r), Rule: r.Rule, Entry: r.Entry, Action: r.Action, Exception: policyException(r)},
			Result: r.Result, Reasons: reasonOf(r),
		}
		for k := range r.Proofs {
			decision.Facts = append(decision.Facts, factOf(&r.Proofs[k]))
		}
		v.Decisions = append(v.Decisions, decision)
	}
	return v, true
}

// asLogged returns the policy as in reports, from the logged document.
func asLogged(p *policy.Policy, r *decisionlog.Rule) *policy.Policy {
	return &policy.Policy{
		Kind: p.Kind, Namespace: p.Namespace, Name: p.Name,
		Metadata: policy.Metadata{Title: p.Title, Category: p.Category, Severity: p.Severity, Unscored: p.Unscored}, Hash: r.Hash,
	}
}

// overrideOf returns the override of the decision; nil where there is none.
func overrideOf(d *decisionlog.Decision) *policy.Override {
	if d.Override == "" {
		return nil
	}
	_, name, _ := strings.Cut(d.Override, "/")
	made := &policy.Override{Name: name, Effect: policy.OverrideDeny}
	if d.Result.Admits() {
		made.Effect = policy.OverrideAllow
	}
	return made
}

func policyException(r *decisionlog.Rule) *policy.Exception {
	if r.Exception == "" {
		return nil
	}
	namespace, name, _ := strings.Cut(r.Exception, "/")
	return &policy.Exception{Namespace: namespace, Name: name}
}

func factOf(p *decisionlog.Proof) verify.Fact {
	proof := proofOf(p)
	made := verify.Fact{Signer: proof.Signer, SignedAt: p.SignedAt, TimeSource: p.TimeSource, Origin: attest.Origin{Manifest: proof.Found.Manifest}}
	if repository, err := image.ParseRepository(proof.Found.Repository); err == nil {
		made.Origin.Repository = repository
	}
	return made
}

func ruleResultOf(r *decisionlog.Rule, p *policy.Policy) policy.RuleResult {
	made := policy.RuleResult{
		Policy: asLogged(p, r), Rule: r.Rule, Kind: policy.ValidateRule, Action: r.Action, Exception: policyException(r), Changed: r.Changed,
		Ruling: policy.Ruling{Result: r.Result, Reasons: reasonOf(r)},
	}
	if r.Result == policy.Indeterminate && r.Reason != nil && r.Reason.Code == policy.PolicyError {
		made.Err = errors.New(r.Reason.Message)
	}
	return made
}

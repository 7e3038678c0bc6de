package recall

import (
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/verify"
)

// imageOf returns a line's verdict on an image.
func imageOf(d *decisionlog.Decision) report.Image {
	made := report.Image{
		Container: d.Image.Container, Written: d.Image.Written, Reference: d.Image.Written, Result: d.Result, Matched: len(d.Rules) > 0,
		Override: d.Override, Reasons: reasonsOf(d.Reasons), Warnings: reasonsOf(d.Warnings),
	}
	if ref, err := image.Parse(d.Image.Written); err == nil {
		made.Reference = ref.String()
	}
	if digest, err := image.ParseDigest(d.Image.Digest); err == nil {
		made.Digest = digest
	}
	if d.Image.Mirror != "" {
		made.Mirror = &report.Mirror{Name: d.Image.Mirror, Target: d.Image.Target, Attempts: []report.Attempt{}}
	}
	for i := range d.Rules {
		made.Decisions = append(made.Decisions, checkOf(&d.Rules[i], d.Result))
	}
	return made
}

// checkOf returns the result of a rule for an image with this answer.
func checkOf(r *decisionlog.Rule, answer gate.Result) report.Decision {
	made := report.Decision{
		Policy: policyOf(r), Rule: r.Rule, Entry: r.Entry, Action: r.Action, Result: r.Result,
		Effect: effectOf(r, answer), Reasons: reasonOf(r), Exception: exceptionOf(r),
	}
	for i := range r.Proofs {
		made.Proofs = append(made.Proofs, proofOf(&r.Proofs[i]))
	}
	return made
}

// effectOf returns the effect of a result on the answer. A failure that did not cause a denial is
// a warning.
func effectOf(r *decisionlog.Rule, answer gate.Result) report.Effect {
	switch {
	case r.Result != policy.Fail && r.Result != policy.Indeterminate:
		return report.EffectAllow
	case answer.Admits() || r.Action == policy.Warn:
		return report.EffectWarn
	case r.Result == policy.Fail:
		return report.EffectDeny
	default:
		return report.EffectError
	}
}

func ruleOf(r *decisionlog.Rule) report.Rule {
	made := report.Rule{
		Policy: policyOf(r), Rule: r.Rule, Kind: policy.ValidateRule, Exception: exceptionOf(r),
		Result: r.Result, Action: r.Action, Reasons: reasonOf(r), Changed: r.Changed,
	}
	switch {
	case r.Result == policy.Skipped:
		made.Skipped, made.Result = "as in the decision log", ""
	case r.Result == policy.Indeterminate && r.Reason != nil && r.Reason.Code == policy.PolicyError:
		made.Error, made.Result = r.Reason.Message, ""
	}
	return made
}

// policyOf parses kind/name or kind/namespace/name.
func policyOf(r *decisionlog.Rule) report.Policy {
	made := report.Policy{Hash: r.Hash}
	parts := strings.Split(r.Policy, "/")
	made.Kind, made.Name = parts[0], parts[len(parts)-1]
	if len(parts) == 3 {
		made.Namespace = parts[1]
	}
	return made
}

func exceptionOf(r *decisionlog.Rule) *report.Exception {
	if r.Exception == "" {
		return nil
	}
	return &report.Exception{Name: r.Exception}
}

func proofOf(p *decisionlog.Proof) report.Proof {
	made := report.Proof{
		Role: p.Role, Format: p.Format, PredicateType: p.Type, SignedAt: p.SignedAt, TimeSource: p.TimeSource,
		Signer: verify.Signer{KeyFingerprint: p.Key, Subject: p.Subject, Issuer: p.Issuer},
	}
	for _, each := range p.LogIndexes {
		if entry, ok := logEntryOf(each); ok {
			made.LogEntries = append(made.LogEntries, entry)
		}
	}
	repository, digest, _ := strings.Cut(p.Where, "@")
	made.Found.Repository = repository
	if manifest, err := image.ParseDigest(digest); err == nil {
		made.Found.Manifest = manifest
	}
	return made
}

// logEntryOf parses log:index.
func logEntryOf(text string) (verify.LogEntry, bool) {
	log, index, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(index, 10, 64)
	return verify.LogEntry{LogID: log, Index: n}, err == nil
}

func reasonOf(r *decisionlog.Rule) []policy.Reason {
	if r.Reason == nil {
		return nil
	}
	return reasonsOf([]decisionlog.Reason{*r.Reason})
}

func reasonsOf(list []decisionlog.Reason) []policy.Reason {
	var made []policy.Reason
	for _, r := range list {
		made = append(made, policy.Reason{Code: r.Code, Message: r.Message, Expected: r.Expected, Found: r.Found, Hint: hint.Of(r.Code)})
	}
	return made
}

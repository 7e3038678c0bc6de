package sigstore_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/verify"
)

// datedFact is evidence of some age by an authority: a signature, or a scan.
type datedFact struct {
	authority, scan string
	ago             time.Duration
	source          verify.TimeSource // none: no verified time
}

func datedAnswers(facts ...datedFact) policy.Answers {
	return func(q policy.Question) (out policy.Answer) {
		for _, f := range facts {
			if q.Authority.Name != f.authority || (q.Role == attest.Attestation) != (f.scan != "") {
				continue
			}
			fact := verify.Fact{Role: q.Role, Signer: verify.Signer{KeyFingerprint: f.authority}, TimeSource: f.source}
			if f.source != "" {
				fact.SignedAt = time.Now().Add(-f.ago)
			}
			if f.scan != "" {
				fact.Statement = &attest.Statement{PredicateType: vulnType, Predicate: json.RawMessage(f.scan)}
			}
			out.Facts = append(out.Facts, fact)
		}
		return out
	}
}

// TestDated: policies read the verified times of signing, and a statement's author cannot write them.
func TestDated(t *testing.T) {
	quote := func(text string) string { out, _ := json.Marshal(text); return string(out) }
	ofScan := func(language, text string) string {
		return head + "  authorities: [{key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln, policy: {type: " + language + ", data: " + quote(text) + "}}]}]\n"
	}
	overall := func(language, text string) string {
		return head + "  authorities: [{name: builder, key: {data: $KEY}}, {name: scanner, key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln}]}]\n" +
			"  policy: {type: " + language + ", data: " + quote(text) + "}\n"
	}
	rego := func(body string) string { return "package sigstore\nisCompliant { " + body + " }" }
	const (
		first  = "authorities[0].key"
		second = "authorities[1].key"
		log    = verify.LogTime
		forged = `{"quaymaster":{"signedAt":"2020-01-01T00:00:00Z","ageSeconds":99999999},"signedAt":"2020-01-01T00:00:00Z"}`
		since  = "time.now_ns() - time.parse_rfc3339_ns(input.quaymaster."
		hours  = " 72 * 3600 * 1000000000"
	)
	fresh, cool := ofScan("rego", rego(since+"signedAt) <="+hours)), ofScan("rego", rego(since+"signedAt) >="+hours))
	freshCUE, coolCUE := ofScan("cue", "quaymaster: ageSeconds: <=259200"), ofScan("cue", "quaymaster: {ageSeconds: >=259200, timeSource: \"log\"}")
	unread := ofScan("rego", rego("input.predicateType"))
	cooled := overall("rego", rego(since+"authorityMatches.builder.signatures.first.signedAt) >="+hours))
	scanned := overall("rego", rego(since+"authorityMatches.scanner.attestations.scan.last.signedAt) <="+hours))
	cooledCUE := overall("cue", "quaymaster: authorityMatches: builder: signatures: first: ageSeconds: >=259200")
	for _, c := range []struct {
		reason, text string
		facts        []datedFact
		want         policy.Result
		code         policy.Code
	}{
		{"Rego, fresh", fresh, []datedFact{{first, "{}", time.Hour, log}}, policy.Pass, policy.Verified},
		{"Rego, stale", fresh, []datedFact{{first, "{}", 73 * time.Hour, log}}, policy.Fail, policy.ConditionFailed},
		{"Rego, old enough", cool, []datedFact{{first, "{}", 73 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"Rego, a time in the statement", cool, []datedFact{{first, forged, time.Hour, log}}, policy.Fail, policy.ConditionFailed},
		{"Rego, no verified time", fresh, []datedFact{{first, forged, 0, ""}}, policy.Indeterminate, policy.NoVerifiedTime},
		{"Rego, the signer's own time", fresh, []datedFact{{first, "{}", time.Hour, verify.OwnTime}}, policy.Indeterminate, policy.NoVerifiedTime},
		{"Rego that reads no time", unread, []datedFact{{first, "{}", 0, ""}}, policy.Pass, policy.Verified},
		{"CUE, fresh", freshCUE, []datedFact{{first, "{}", time.Hour, log}}, policy.Pass, policy.Verified},
		{"CUE, stale", freshCUE, []datedFact{{first, "{}", 73 * time.Hour, log}}, policy.Fail, policy.ConditionFailed},
		{"CUE, old enough", coolCUE, []datedFact{{first, "{}", 73 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"CUE, another source", coolCUE, []datedFact{{first, "{}", 73 * time.Hour, verify.StampTime}}, policy.Fail, policy.ConditionFailed},
		{"CUE, a time in the statement", coolCUE, []datedFact{{first, forged, time.Hour, log}}, policy.Fail, policy.ConditionFailed},
		{"CUE, no verified time", freshCUE, []datedFact{{first, forged, 0, ""}}, policy.Indeterminate, policy.NoVerifiedTime},
		{"all, old enough", cooled, []datedFact{{first, "", 73 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"all, too young", cooled, []datedFact{{first, "", time.Hour, log}}, policy.Fail, policy.Denied},
		{"all, signed again", cooled, []datedFact{{first, "", time.Hour, log}, {first, "", 73 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"all, an old statement of another", cooled, []datedFact{{first, "", time.Hour, log}, {second, "{}", 99 * time.Hour, log}}, policy.Fail, policy.Denied},
		{"all, no verified time", cooled, []datedFact{{first, "", 0, ""}}, policy.Indeterminate, policy.NoVerifiedTime},
		{"all, a fresh scan", scanned, []datedFact{{second, "{}", time.Hour, log}, {second, "{}", 99 * time.Hour, log}}, policy.Fail, policy.Denied},
		{"all, another fresh scan", scanned, []datedFact{{second, `{"a":1}`, time.Hour, log}, {second, "{}", 99 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"all, a stale scan", scanned, []datedFact{{second, "{}", 99 * time.Hour, log}}, policy.Fail, policy.Denied},
		{"all, in CUE, old enough", cooledCUE, []datedFact{{first, "", 73 * time.Hour, log}}, policy.Pass, policy.Verified},
		{"all, in CUE, too young", cooledCUE, []datedFact{{first, "", time.Hour, log}}, policy.Fail, policy.Denied},
		{"all, in CUE, no signature", cooledCUE, []datedFact{{second, "{}", 99 * time.Hour, log}}, policy.Fail, policy.Denied},
	} {
		check := only(t, compile(t, sigstore.Options{Now: time.Now}, c.text))
		d := decision(t, check, datedAnswers(c.facts...))
		if d.Result != c.want || d.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v; want %s %s", c.reason, d.Result, d.Reasons, c.want, c.code)
		}
	}
	for reason, text := range map[string]string{
		"a name that the time does not have":      ofScan("rego", rego("input.quaymaster.signdAt")),
		"a name that no authority has":            overall("rego", rego("input.quaymaster.authorityMatches.other")),
		"an attestation that no authority has":    overall("rego", rego("input.quaymaster.authorityMatches.scanner.attestations.sbom")),
		"a time of an authority in its own place": overall("rego", rego("input.authorityMatches.builder.signedAt")),
	} {
		if _, err := sigstore.New(sigstore.Options{Now: time.Now}).Compile([]byte(fill(t, text)), "test.yaml"); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}

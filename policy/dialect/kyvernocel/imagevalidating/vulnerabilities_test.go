package imagevalidating_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// scanPolicy denies fixable critical vulnerabilities that nobody trusted excuses, by a fresh scan.
const scanPolicy = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: vulnerabilities}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences:
  - glob: HOST/org/*
  attestors:
  - name: scanner
    cosign: {key: {data: 'KEY'}}
  - name: security
    cosign: {key: {data: 'STRANGER'}, ctlog: {insecureIgnoreTlog: true}}
  attestations:
  - name: scan
    intoto: {type: https://cosign.sigstore.dev/attestation/vuln/v1}
  - name: vex
    intoto: {type: https://openvex.dev/ns/v0.2.0}
  validations:
  - expression: >-
      images.containers.all(image, vulnerabilities(image, attestations.scan, [attestors.scanner],
        attestations.vex, [attestors.security], duration("72h")).all(v,
          !(v.severity in ["critical", "unknown"]) || !v.fixable || v.status in ["not_affected", "fixed"]))
    message: a critical vulnerability with a fix is not excused
`

// scanOf is cosign's record of a scan by Trivy, with one finding.
func scanOf(severity, fixed string) json.RawMessage {
	return json.RawMessage(`{"scanner":{"uri":"pkg:github/aquasecurity/trivy@0.60.0","result":{"SchemaVersion":2,"ArtifactName":"app","Results":[
		{"Target":"debian","Vulnerabilities":[{"VulnerabilityID":"CVE-2026-0001","PkgName":"openssl","InstalledVersion":"3.0.1-1","FixedVersion":"` + fixed + `",
		"Severity":"` + severity + `","PkgIdentifier":{"PURL":"pkg:deb/debian/openssl@3.0.1-1?arch=amd64&distro=debian-12"}}]}]}},
		"metadata":{"scanStartedOn":"2026-01-01T00:00:00Z","scanFinishedOn":"2026-01-01T00:00:00Z"}}`)
}

// vexOf is an OpenVEX document with one statement about a product.
func vexOf(product, vulnerability, status string) json.RawMessage {
	return json.RawMessage(`{"@context":"https://openvex.dev/ns/v0.2.0","@id":"https://example.com/vex/1","author":"security","timestamp":"2026-01-01T00:00:00Z",
		"statements":[{"vulnerability":{"name":"` + vulnerability + `"},"products":[{"@id":"` + product + `"}],"status":"` + status + `",
		"justification":"vulnerable_code_not_in_execute_path"}]}`)
}

func TestVulnerabilities(t *testing.T) {
	h := newEnv(t)
	const openssl, vexType = "pkg:deb/debian/openssl@3.0.1-1", attest.PredicateOpenVEX + "/v0.2.0"
	type vex struct {
		by   *verifytest.Signer
		body json.RawMessage
	}
	critical := scanOf("CRITICAL", "3.0.2-1")
	excused := vexOf(openssl, "CVE-2026-0001", "not_affected")
	for name, c := range map[string]struct {
		scan   json.RawMessage
		by     *verifytest.Signer
		age    time.Duration
		noLog  bool
		vex    []vex
		answer gate.Result
		word   string
	}{
		"no finding of this severity":             {scan: scanOf("HIGH", "3.0.2-1"), answer: gate.Allow},
		"no fix":                                  {scan: scanOf("CRITICAL", ""), answer: gate.Allow},
		"a fixable critical finding":              {scan: critical, answer: gate.Deny, word: "is not excused"},
		"a severity that is not known":            {scan: scanOf("ODD", "3.0.2-1"), answer: gate.Deny, word: "is not excused"},
		"excused by a trusted signer":             {scan: critical, vex: []vex{{h.stranger, excused}}, answer: gate.Allow},
		"excused by another signer":               {scan: critical, vex: []vex{{h.key, excused}}, answer: gate.Deny},
		"excused for another vulnerability":       {scan: critical, vex: []vex{{h.stranger, vexOf(openssl, "CVE-2026-0002", "not_affected")}}, answer: gate.Deny},
		"excused for another package":             {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:deb/debian/curl", "CVE-2026-0001", "not_affected")}}, answer: gate.Deny},
		"excused for another version":             {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:deb/debian/openssl@3.0.1-10", "CVE-2026-0001", "not_affected")}}, answer: gate.Deny},
		"excused for every version":               {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:deb/debian/openssl", "CVE-2026-0001", "not_affected")}}, answer: gate.Allow},
		"excused for a range with the version":    {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:deb/debian/openssl?vers=vers:deb/%3C3.0.2-1", "CVE-2026-0001", "not_affected")}}, answer: gate.Allow},
		"excused for a range without the version": {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:deb/debian/openssl?vers=vers:deb/%3C3.0.1-1", "CVE-2026-0001", "not_affected")}}, answer: gate.Deny},
		"excused for another image":               {scan: critical, vex: []vex{{h.stranger, vexOf("pkg:oci/app@sha256:"+strings.Repeat("0", 64), "CVE-2026-0001", "not_affected")}}, answer: gate.Deny},
		"confirmed":                               {scan: critical, vex: []vex{{h.stranger, vexOf(openssl, "CVE-2026-0001", "affected")}}, answer: gate.Deny},
		"excused and confirmed":                   {scan: critical, vex: []vex{{h.stranger, excused}, {h.stranger, vexOf(openssl, "CVE-2026-0001", "affected")}}, answer: gate.Deny},
		"excused among other documents":           {scan: critical, vex: []vex{{h.stranger, vexOf(openssl, "CVE-2026-0002", "affected")}, {h.stranger, excused}}, answer: gate.Allow},
		"a status that is none":                   {scan: critical, vex: []vex{{h.stranger, vexOf(openssl, "CVE-2026-0001", "harmless")}}, answer: gate.Error, word: "is not one of VEX"},
		"an old scan":                             {scan: scanOf("LOW", ""), age: 73 * time.Hour, answer: gate.Error, word: "too-old"},
		"a scan of another signer":                {scan: scanOf("LOW", ""), by: h.stranger, answer: gate.Error, word: "no vulnerability scan is verified"},
		"a scan of another form":                  {scan: json.RawMessage(`{"scanner":{"result":{}}}`), answer: gate.Error, word: "no report of Trivy"},
		"no scan":                                 {answer: gate.Error, word: "no vulnerability scan is verified"},
	} {
		t.Run(name, func(t *testing.T) {
			built := h.signed(t, strings.ReplaceAll(name, " ", "-"))
			if c.scan != nil {
				claim := verifytest.Claim{Signer: c.by, Time: time.Now().Add(-c.age)}
				if c.by == nil {
					claim.Signer = h.key
				}
				put(t, h, built, claim, attest.PredicateVuln, c.scan)
			}
			for _, v := range c.vex {
				put(t, h, built, verifytest.Claim{Signer: v.by, NoLog: true}, vexType, v.body)
			}
			out := h.decide(t, pod(t, built.Name), scanPolicy)
			expect(t, out, name, c.answer, c.word)
			for _, d := range out.Verdicts[0].Decisions {
				if want := "CVE-2026-0001 (critical) in openssl 3.0.1-1, fixed in 3.0.2-1"; name == "a fixable critical finding" && d.Reasons[0].Found != want {
					t.Errorf("found %q, want %q", d.Reasons[0].Found, want)
				}
				if name == "excused by a trusted signer" && len(d.Facts) != 2 {
					t.Errorf("%d facts decided, want the scan and the VEX document", len(d.Facts))
				}
			}
		})
	}
}

func put(t *testing.T, h *env, built gatetest.Image, claim verifytest.Claim, kind string, body json.RawMessage) {
	t.Helper()
	if err := h.AttestLegacy(built, claim, kind, body); err != nil {
		t.Fatal(err)
	}
}

// TestVulnerabilitiesInOrder: a later statement or scan counts, by log times.
func TestVulnerabilitiesInOrder(t *testing.T) {
	h := newEnv(t)
	logged := strings.ReplaceAll(scanPolicy, ", ctlog: {insecureIgnoreTlog: true}", "")
	const openssl, vexType = "pkg:deb/debian/openssl@3.0.1-1", attest.PredicateOpenVEX + "/v0.2.0"
	excused, confirmed := vexOf(openssl, "CVE-2026-0001", "not_affected"), vexOf(openssl, "CVE-2026-0001", "affected")
	critical, clean := scanOf("CRITICAL", "3.0.2-1"), scanOf("LOW", "")
	for name, c := range map[string]struct {
		scans, vex []json.RawMessage // the latest last
		answer     gate.Result
	}{
		"excused last":       {[]json.RawMessage{critical}, []json.RawMessage{confirmed, excused}, gate.Allow},
		"confirmed last":     {[]json.RawMessage{critical}, []json.RawMessage{excused, confirmed}, gate.Deny},
		"a later clean scan": {[]json.RawMessage{critical, clean}, nil, gate.Allow},
		"a later other scan": {[]json.RawMessage{clean, critical}, nil, gate.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			built := h.signed(t, strings.ReplaceAll(name, " ", "-"))
			for i, body := range c.scans {
				put(t, h, built, verifytest.Claim{Signer: h.key, Time: time.Now().Add(time.Duration(i-9) * time.Hour)}, attest.PredicateVuln, body)
			}
			for i, body := range c.vex {
				put(t, h, built, verifytest.Claim{Signer: h.stranger, Time: time.Now().Add(time.Duration(i-9) * time.Hour)}, vexType, body)
			}
			expect(t, h.decide(t, pod(t, built.Name), logged), name, c.answer, "")
		})
	}
}

// TestVulnerabilitiesUnread: a scan or VEX document that could not be read may be later, or counts too
// where none has a verified time. A condition that does not depend on it decides.
func TestVulnerabilitiesUnread(t *testing.T) {
	const openssl, list = "pkg:deb/debian/openssl@3.0.1-1", "images.containers.all(i, vulnerabilities(i, attestations.scan, [attestors.ours], attestations.vex, [attestors.keyless])"
	const excuses = list + `.all(v, v.severity != "critical" || v.status == "not_affected"))`
	const confirmed = "!" + list + `.exists(v, v.status == "affected"))`
	critical, high := string(scanOf("CRITICAL", "3.0.2-1")), string(scanOf("HIGH", "3.0.2-1"))
	clean := `{"SchemaVersion":2,"ArtifactName":"app"}`
	excuse, affected := string(vexOf(openssl, "CVE-2026-0001", "not_affected")), string(vexOf(openssl, "CVE-2026-0001", "affected"))
	timed := func(a policy.Answer) policy.Answer {
		a = dated(a, 1)
		a.Facts[0].TimeSource = verify.LogTime
		return a
	}
	down := func(a policy.Answer) policy.Answer { return unread(a, image.Unavailable) }
	for _, c := range []struct {
		reason, expression string
		scan, vex          policy.Answer
		want               policy.Result
	}{
		{"an excuse", excuses, saying("a", critical), saying("b", excuse), policy.Pass},
		{"an excuse, and another document is unread", excuses, saying("a", critical), down(saying("b", excuse)), policy.Indeterminate},
		{"an excuse with a time", excuses, saying("a", critical), timed(saying("b", excuse)), policy.Pass},
		{"an excuse with a time, and another document is unread", excuses, saying("a", critical), down(timed(saying("b", excuse))), policy.Indeterminate},
		{"no excuse, and another document is unread", excuses, saying("a", critical), down(policy.Answer{}), policy.Indeterminate},
		{"no excuse", excuses, saying("a", critical), policy.Answer{}, policy.Fail},
		{"no excuse is needed, and a document is unread", excuses, saying("a", high), down(policy.Answer{}), policy.Pass},
		{"nothing is confirmed", confirmed, saying("a", high), policy.Answer{}, policy.Pass},
		{"nothing is confirmed, and a document is unread", confirmed, saying("a", high), down(policy.Answer{}), policy.Indeterminate},
		{"confirmed", confirmed, saying("a", high), saying("b", affected), policy.Fail},
		{"a clean scan", excuses, saying("a", clean), policy.Answer{}, policy.Pass},
		{"a clean scan, and another is unread", excuses, down(saying("a", clean)), policy.Answer{}, policy.Indeterminate},
		{"a clean scan with a time", excuses, timed(saying("a", clean)), policy.Answer{}, policy.Pass},
		{"a clean scan with a time, and another is unread", excuses, down(timed(saying("a", clean))), policy.Answer{}, policy.Indeterminate},
	} {
		text := edit(expressed(c.expression), "  - {name: sbom,", "  - {name: vex, intoto: {type: https://openvex.dev/ns}}\n  - {name: sbom,")
		for i := range c.vex.Facts {
			c.vex.Facts[i].Statement.PredicateType = attest.PredicateOpenVEX
		}
		by := answers{"ours/" + vulnType: c.scan, "keyless/" + attest.PredicateOpenVEX: c.vex}
		d := judged(t, text, by, map[string]any{}, containers(app), nil).Decisions[0]
		if d.Result != c.want {
			t.Errorf("%s: %s %s, want %s", c.reason, d.Result, textOf(d.Reasons), c.want)
		}
	}
}

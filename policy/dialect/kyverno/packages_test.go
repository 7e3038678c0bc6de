package kyverno_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

const inventories = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: inventories}
spec:
  validationFailureAction: Enforce
  rules:
  - name: packages
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestations:
      - type: https://cyclonedx.org/bom
        name: bill
        attestors: [{entries: [{keys: {kms: "awskms:///alias/builder"}}]}]
        conditions:
        - all:
          - key: "{{ packages_not_licensed({bomFormat: bomFormat, specVersion: specVersion, components: components}, ['MIT', 'GPL-3.0-only'])[].name }}"
            operator: Equals
            value: []
      - type: https://cosign.sigstore.dev/attestation/vuln/v1
        name: scan
        attestors: [{entries: [{keys: {kms: "awskms:///alias/scanner"}}]}]
      - type: https://openvex.dev/ns
        name: vex
        attestors: [{entries: [{keys: {kms: "awskms:///alias/security"}}]}]
      validate:
        deny:
          conditions:
            any:
            - {key: "{{ length(packages_of(bill, 'pkg:npm/lodash?vers=<4.17.21')) }}", operator: NotEquals, value: 0}
            - {key: "{{ packages_requiring_license(bill, ['GPL-3.0-or-later'])[].name }}", operator: NotEquals, value: []}
            - key: "{{ vulnerabilities(scan, vex)[?severity == 'critical' && fixable && status != 'not_affected'].id }}"
              operator: NotEquals
              value: []
`

// TestInventories: conditions on predicates of trusted signers, by the functions about packages and findings.
func TestInventories(t *testing.T) {
	bill := func(version, license string) string {
		return `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"lodash","version":"` + version + `","purl":"pkg:npm/lodash@` + version +
			`","licenses":[{"expression":"` + license + `"}]}]}`
	}
	const scan = `{"scanner":{"result":{"matches":[{"vulnerability":{"id":"CVE-1","severity":"Critical","fix":{"versions":["2"]}},
		"artifact":{"name":"a","version":"1","purl":"pkg:npm/a@1"}}]}}}`
	vex := func(product, status string) string {
		return `{"@context":"https://openvex.dev/ns/v0.2.0","statements":[{"vulnerability":{"name":"CVE-1"},"products":[{"@id":"` + product + `"}],"status":"` + status + `"}]}`
	}
	good, excused := bill("4.17.21", "MIT"), vex("pkg:npm/a@1", "not_affected")
	for _, c := range []struct {
		reason, bill, scan, vex string
		want                    policy.Result
		word                    string
	}{
		{"nothing is forbidden", good, scan, excused, policy.Pass, ""},
		{"a package that is too old", bill("4.17.20", "MIT"), scan, excused, policy.Fail, ""},
		{"a package without a version", bill("", "MIT"), scan, excused, policy.Fail, "no version"},
		{"a licence that is forbidden", bill("4.17.21", "MIT AND GPL-3.0-only"), scan, excused, policy.Fail, ""},
		{"a licence that is not allowed", bill("4.17.21", "ISC"), scan, excused, policy.Fail, ""},
		{"a licence that is not known", bill("4.17.21", "GPLv3"), scan, excused, policy.Fail, "not known"},
		{"a licence that may be forbidden", bill("4.17.21", "MIT OR GPLv3 AND GPL-3.0-only"), scan, excused, policy.Pass, ""},
		{"another form of bill", `{"bomFormat":"CycloneDX","specVersion":"1.0","components":[]}`, scan, excused, policy.Fail, "1.0"},
		{"no finding", good, strings.Replace(scan, "Critical", "High", 1), vex("pkg:npm/a@1", "affected"), policy.Pass, ""},
		{"a finding of another version", good, scan, vex("pkg:npm/a@2", "not_affected"), policy.Fail, ""},
		{"a finding of another product", good, scan, vex("pkg:npm/b@1", "not_affected"), policy.Fail, ""},
		{"a finding that is confirmed", good, scan, vex("pkg:npm/a@1", "affected"), policy.Fail, ""},
		{"another form of scan", good, `{}`, excused, policy.Fail, "no report of Trivy"},
		{"another form of VEX", good, scan, `{}`, policy.Fail, "neither OpenVEX nor CSAF"},
		{"a bill whose request is another", strings.Replace(good, `{"bomFormat"`, `{"request":{"a":1},"bomFormat"`, 1), scan, excused, policy.Pass, ""},
	} {
		p, err := newCompiler(t, nil).Compile([]byte(inventories), "test")
		if err != nil {
			t.Fatal(err)
		}
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), pod("prod"), func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{container("ghcr.io/org/app:v1")}, nil
		})
		decision := decide.Check(&plan.Checks[0], func(q policy.Question) policy.Answer {
			predicate := map[string]string{"builder": c.bill, "scanner": c.scan, "security": c.vex}[strings.TrimPrefix(q.Authority.Key.Ref, "awskms:///alias/")]
			return policy.Answer{Facts: []verify.Fact{{
				Role: q.Role, Signer: verify.Signer{KeyFingerprint: q.Authority.Key.Ref}, Statement: &attest.Statement{PredicateType: q.Predicate, Predicate: []byte(predicate)},
			}}}
		})
		words := ""
		for _, reason := range decision.Reasons {
			words += reason.Message + reason.Found + " "
		}
		if decision.Result != c.want || !strings.Contains(words, c.word) {
			t.Errorf("%s: %s %+v; want %s", c.reason, decision.Result, decision.Reasons, c.want)
		}
	}
}

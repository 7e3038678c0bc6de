package attacks

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// inventoried forbids an old lodash and the GPL, and fixable critical findings that SECOND does not excuse.
const inventoried = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: inventoried}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences: [{glob: HOST/shop/*}]
  attestors:
  - {name: builder, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}
  - {name: security, cosign: {key: {data: SECOND}, ctlog: {insecureIgnoreTlog: true}}}
  attestations:
  - {name: sbom, intoto: {type: https://cyclonedx.org/bom}}
  - {name: scan, intoto: {type: https://cosign.sigstore.dev/attestation/vuln/v1}}
  - {name: vex, intoto: {type: https://openvex.dev/ns}}
  validations:
`

const (
	ofPackages = `  - expression: images.containers.all(i, packages(i, attestations.sbom, [attestors.builder]).all(p, !isPackage(p, "pkg:npm/lodash", "<4.17.21")))
  - expression: images.containers.all(i, packages(i, attestations.sbom, [attestors.builder]).all(p, !requiresLicense(p, ["GPL-3.0-or-later"])))
`
	ofFindings = `  - expression: >-
      images.containers.all(i, vulnerabilities(i, attestations.scan, [attestors.builder], attestations.vex, [attestors.security]).all(v,
        v.severity != "critical" || !v.fixable || v.status == "not_affected"))
`
)

// bill has one package after others.
func bill(version, url, licences string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"left","version":"1.0.0","purl":"pkg:npm/left@1.0.0",
		"licenses":[{"license":{"id":"MIT"}}]},{"name":"lodash","version":%q,"purl":%q,"licenses":%s}]}`, version, url, licences))
}

const mit = `[{"license":{"id":"MIT"}}]`

func goodBill() json.RawMessage { return bill("4.17.21", "pkg:npm/lodash@4.17.21", mit) }

// bills attests a bill of materials of the right key.
func bills(body json.RawMessage) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		return s.AttestBundle(image, by(s.key), attest.PredicateCycloneDX, body)
	}
}

// excuses attests a critical finding, and a statement about it.
func excuses(signer func(*scene) *verifytest.Signer, author, product, vulnerability string) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		scan := object{"matches": []any{object{
			"vulnerability": object{"id": "CVE-2026-1", "severity": "Critical", "fix": object{"versions": []any{"3.0.2-1"}}},
			"artifact":      object{"name": "openssl", "version": "3.0.1-1", "purl": "pkg:deb/debian/openssl@3.0.1-1"},
		}}}
		statement := object{"vulnerability": object{"name": vulnerability}, "products": []any{object{"@id": product}}, "status": "not_affected"}
		vex := object{"@context": "https://openvex.dev/ns/v0.2.0", "author": author, "statements": []any{statement}}
		return first(s.AttestBundle(image, by(s.key), attest.PredicateVuln, object{"scanner": object{"result": scan}}),
			s.AttestBundle(image, by(signer(s)), attest.PredicateOpenVEX, vex))
	}
}

func inventoryAttacks() []attack {
	nested := json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a","purl":"pkg:npm/a@1","licenses":[{"expression":"MIT"}],
		"components":[{"name":"lodash","purl":"pkg:npm/lodash@4.17.20","licenses":[{"expression":"MIT"}]}]}]}`)
	const versions, products = "package URLs: two spellings of a version", "VEX: products of other documents"
	second := func(s *scene) *verifytest.Signer { return s.second }
	row := func(name, what, source string, bad func(*scene, gatetest.Image) error, codes ...policy.Code) attack {
		return attack{name, what, source, everywhere(), judged(inventoried+ofPackages, bills(goodBill()), bad, codes...)}
	}
	finding := func(name, what, source string, bad func(*scene, gatetest.Image) error) attack {
		good := excuses(second, "security", "pkg:deb/debian/openssl@3.0.1-1", "CVE-2026-1")
		return attack{name, what, source, everywhere(), judged(inventoried+ofFindings, good, bad, policy.Denied)}
	}
	return []attack{
		row("package-that-is-forbidden", "The bill of materials has a forbidden version. It is denied.", versions,
			bills(bill("4.17.20", "pkg:npm/lodash@4.17.20", mit)), policy.Denied),
		row("package-with-two-versions", "The package has a forbidden version and a package URL of an allowed one. It cannot be evaluated.", versions,
			bills(bill("4.17.20", "pkg:npm/lodash@4.17.21", mit))),
		row("package-with-two-versions-turned", "The package has an allowed version and a package URL of a forbidden one. It cannot be evaluated.", versions,
			bills(bill("4.17.21", "pkg:npm/lodash@4.17.20", mit))),
		row("package-in-an-escaped-url", "The package URL is written with escapes. It is denied like the plain one.", versions,
			bills(bill("4.17.20", "pkg:npm/l%6fdash@4.17.20", mit)), policy.Denied),
		row("package-without-a-url", "The package has the forbidden name and no package URL. It cannot be evaluated.", versions, bills(bill("4.17.20", "", mit))),
		row("package-in-another-component", "The package is a component of another component. It is denied.", "CycloneDX: components in components",
			bills(nested), policy.Denied),
		row("licence-that-makes-an-alternative", "The name of a second licence would turn the forbidden one into an alternative. It cannot be evaluated.", "SPDX expressions of package authors",
			bills(bill("4.17.21", "pkg:npm/lodash@4.17.21", `[{"license":{"id":"GPL-3.0-only"}},{"license":{"name":"MIT) OR (MIT"}}]`))),
		row("deep-bill", "Components are nested 200 deep, and JSON more than its bound. It is denied.", "CWE-674", bills(json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[`+
			strings.Repeat(`{"name":"a","components":[`, 200)+strings.Repeat("]}", 200)+`]}`))),
		row("huge-bill", "The bill has 10,001 packages. It cannot be evaluated.", "CWE-770", bills(json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[`+
			strings.Repeat(`{"name":"a","purl":"pkg:npm/a@1","licenses":[{"expression":"MIT"}]},`, 10_000)+`{"name":"a"}]}`))),
		row("bill-by-a-stranger", "The bill without a forbidden package is signed with another key. It is denied.", "statements of other signers", func(s *scene, image gatetest.Image) error {
			return s.AttestBundle(image, by(s.stranger), attest.PredicateCycloneDX, goodBill())
		}),
		row("bill-by-a-stranger-beside-ours", "The right key's bill has a forbidden package, and another key's has none. It is denied.", "statements of other signers", func(s *scene, image gatetest.Image) error {
			return first(bills(bill("4.17.20", "pkg:npm/lodash@4.17.20", mit))(s, image), s.AttestBundle(image, by(s.stranger), attest.PredicateCycloneDX, goodBill()))
		}, policy.Denied),
		finding("excuse-for-another-product", "A VEX statement excuses the vulnerability in another package. It is denied.", products,
			excuses(second, "security", "pkg:deb/debian/curl", "CVE-2026-1")),
		finding("excuse-for-a-longer-version", "A VEX statement excuses a version that begins like the package's. It is denied.", products,
			excuses(second, "security", "pkg:deb/debian/openssl@3.0.1-10", "CVE-2026-1")),
		finding("excuse-for-another-vulnerability", "A VEX statement excuses another vulnerability of the package. It is denied.", products,
			excuses(second, "security", "pkg:deb/debian/openssl@3.0.1-1", "CVE-2026-2")),
		finding("excuse-by-the-scanner", "The key of scans signs the VEX document, and names the trusted author in it. It is denied.", "OpenVEX: author is a text",
			excuses(func(s *scene) *verifytest.Signer { return s.key }, "security", "pkg:deb/debian/openssl@3.0.1-1", "CVE-2026-1")),
	}
}

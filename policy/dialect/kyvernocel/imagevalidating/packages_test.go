package imagevalidating_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// billPolicy denies an old lodash, and what the GPL applies to, by a fresh bill of materials.
const billPolicy = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: packages}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences:
  - glob: HOST/org/*
  attestors:
  - name: builder
    cosign: {key: {data: 'KEY'}}
  attestations:
  - name: sbom
    intoto: {type: https://cyclonedx.org/bom}
  variables:
  - name: packages
    expression: images.containers.map(image, packages(image, attestations.sbom, [attestors.builder], duration("720h")))
  validations:
  - expression: variables.packages.all(list, list.size() > 0 && !list.exists(p, isPackage(p, "pkg:npm/lodash", "<4.17.21")))
    message: lodash is too old
  - expression: variables.packages.all(list, list.all(p, p.purl == "" || !requiresLicense(p, ["GPL-3.0-or-later"])))
    message: a package is under the GPL
  - expression: variables.packages.all(list, list.all(p, isLicensed(p, ["MIT", "Apache-2.0", "GPL-2.0-only"])))
    message: a licence is not allowed
`

// billOf is a CycloneDX document with a package, after others that no rule is about.
func billOf(name, version, license string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"component":{"type":"container","name":"app"}},"components":[
		{"type":"library","name":"left","version":"1.0.0","purl":"pkg:npm/left@1.0.0","licenses":[{"license":{"id":"MIT"}}]},
		{"type":"application","name":"bundle","licenses":[{"license":{"id":"MIT"}}],"components":[
			{"type":"library","name":"%[1]s","version":"%[2]s","purl":"pkg:npm/%[1]s@%[2]s","licenses":[{"expression":"%[3]s"}]}]}]}`, name, version, license))
}

func TestPackages(t *testing.T) {
	h := newEnv(t)
	spdx := json.RawMessage(`{"spdxVersion":"SPDX-2.3","packages":[{"name":"lodash","versionInfo":"4.17.20","licenseConcluded":"MIT",
		"externalRefs":[{"referenceType":"purl","referenceLocator":"pkg:npm/lodash@4.17.20"}]}]}`)
	good := billOf("lodash", "4.17.21", "MIT")
	for name, c := range map[string]struct {
		bill   json.RawMessage
		by     *verifytest.Signer
		age    time.Duration
		answer gate.Result
		word   string
		found  string
	}{
		"a package that is late enough":         {bill: good, answer: gate.Allow},
		"a package that is too old":             {bill: billOf("lodash", "4.17.20", "MIT"), answer: gate.Deny, word: "lodash is too old", found: "lodash 4.17.20 is pkg:npm/lodash <4.17.21"},
		"another package as old":                {bill: billOf("lodash-es", "4.17.20", "MIT"), answer: gate.Allow},
		"another form of bill":                  {bill: spdx, answer: gate.Deny, word: "lodash is too old"},
		"no version":                            {bill: billOf("lodash", "", "MIT"), answer: gate.Error, word: "no version"},
		"a version that is none":                {bill: billOf("lodash", "4 5", "MIT"), answer: gate.Error, word: "is not a version"},
		"two versions":                          {bill: json.RawMessage(strings.Replace(string(good), `"version":"4.17.21"`, `"version":"4.17.20"`, 1)), answer: gate.Error, word: "another version"},
		"no package address":                    {bill: json.RawMessage(strings.Replace(string(good), `"purl":"pkg:npm/lodash@4.17.21",`, "", 1)), answer: gate.Error, word: "no package URL"},
		"a licence that is forbidden":           {bill: billOf("foo", "1.0.0", "MIT AND GPL-3.0-only"), answer: gate.Deny, word: "under the GPL", found: "foo 1.0.0: MIT AND GPL-3.0-only"},
		"a licence that another may replace":    {bill: billOf("foo", "1.0.0", "MIT OR GPL-3.0-only"), answer: gate.Allow},
		"a licence that is not allowed":         {bill: billOf("foo", "1.0.0", "ISC"), answer: gate.Deny, word: "a licence is not allowed", found: "foo 1.0.0: ISC is not allowed"},
		"a later version than one that is":      {bill: billOf("foo", "1.0.0", "GPL-2.0-or-later"), answer: gate.Allow},
		"a licence that is not known":           {bill: billOf("foo", "1.0.0", "NOASSERTION"), answer: gate.Error, word: "is not known"},
		"a licence that is prose":               {bill: billOf("foo", "1.0.0", "see COPYING"), answer: gate.Error, word: "licence expression"},
		"no packages":                           {bill: json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.6"}`), answer: gate.Deny, word: "lodash is too old"},
		"another version of the form":           {bill: json.RawMessage(`{"bomFormat":"CycloneDX","specVersion":"1.3"}`), answer: gate.Error, word: "1.3"},
		"no form of bill":                       {bill: json.RawMessage(`{}`), answer: gate.Error, word: "no JSON of SPDX"},
		"a bill of another signer":              {bill: good, by: h.stranger, answer: gate.Error, word: "no bill of materials is verified"},
		"an old bill":                           {bill: good, age: 721 * time.Hour, answer: gate.Error, word: "too-old"},
		"no bill":                               {answer: gate.Error, word: "no bill of materials is verified"},
		"ten thousand packages":                 {bill: many(9998), answer: gate.Allow},
		"more than the bound of ten thousand":   {bill: many(9999), answer: gate.Error, word: "more than 10000"},
		"a field for the name of another image": {bill: json.RawMessage(strings.Replace(string(good), `"name":"app"`, `"name":"lodash"`, 1)), answer: gate.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			built := h.signed(t, strings.ReplaceAll(name, " ", "-"))
			if c.bill != nil {
				claim := verifytest.Claim{Signer: c.by, Time: time.Now().Add(-c.age)}
				if c.by == nil {
					claim.Signer = h.key
				}
				put(t, h, built, claim, attest.PredicateCycloneDX, c.bill)
			}
			out := h.decide(t, pod(t, built.Name), billPolicy)
			expect(t, out, name, c.answer, c.word)
			for _, d := range out.Verdicts[0].Decisions {
				if c.found != "" && d.Reasons[0].Found != c.found {
					t.Errorf("found %q, want %q", d.Reasons[0].Found, c.found)
				}
				if name == "a package that is late enough" && len(d.Facts) != 1 {
					t.Errorf("%d facts decided, want the bill of materials", len(d.Facts))
				}
			}
		})
	}
}

// many is a bill of two packages and n others.
func many(n int) json.RawMessage {
	other := `{"name":"p","version":"1","purl":"pkg:npm/p@1","licenses":[{"expression":"MIT"}]},`
	return json.RawMessage(strings.Replace(string(billOf("foo", "1.0.0", "MIT")), `"components":[`, `"components":[`+strings.Repeat(other, n-1), 1))
}

// TestPackagesInOrder: a later bill of materials counts, by log times; of two signers both count.
func TestPackagesInOrder(t *testing.T) {
	h := newEnv(t)
	both := strings.Replace(strings.ReplaceAll(billPolicy, "[attestors.builder]", "[attestors.builder, attestors.other]"), "  attestations:\n",
		"  - name: other\n    cosign: {key: {data: 'STRANGER'}}\n  attestations:\n", 1)
	good, bad := billOf("lodash", "4.17.21", "MIT"), billOf("lodash", "4.17.20", "MIT")
	type bill struct {
		by   *verifytest.Signer
		body json.RawMessage
	}
	for name, c := range map[string]struct {
		bills  []bill // the latest last
		policy string
		answer gate.Result
	}{
		"good last":                   {[]bill{{h.key, bad}, {h.key, good}}, billPolicy, gate.Allow},
		"bad last":                    {[]bill{{h.key, good}, {h.key, bad}}, billPolicy, gate.Deny},
		"good last of another signer": {[]bill{{h.key, bad}, {h.stranger, good}}, both, gate.Deny},
		"good of two signers":         {[]bill{{h.key, good}, {h.stranger, good}}, both, gate.Allow},
		"bad of a signer not named":   {[]bill{{h.key, good}, {h.stranger, bad}}, billPolicy, gate.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			built := h.signed(t, strings.ReplaceAll(name, " ", "-"))
			for i, b := range c.bills {
				put(t, h, built, verifytest.Claim{Signer: b.by, Time: time.Now().Add(time.Duration(i-9) * time.Hour)}, attest.PredicateCycloneDX, b.body)
			}
			expect(t, h.decide(t, pod(t, built.Name), c.policy), name, c.answer, "")
		})
	}
}

func TestPackagesRefused(t *testing.T) {
	for reason, c := range map[string]struct{ from, to, word string }{
		"a package URL that is none":         {`"pkg:npm/lodash"`, `"npm/lodash"`, "package URL"},
		"a version and a range":              {`"pkg:npm/lodash"`, `"pkg:npm/lodash@1"`, "it has a version"},
		"a range of a type without an order": {`"pkg:npm/lodash"`, `"pkg:generic/lodash"`, "order"},
		"an attestation that is not defined": {`attestations.sbom`, `attestations.bill`, "not defined"},
		"an attestor that is not defined":    {`attestors.builder]`, `attestors.bilder]`, "not defined"},
	} {
		text := strings.Replace(strings.Replace(billPolicy, "KEY", "k8s://a/b", 1), "data: 'k8s", "kms: 'k8s", 1)
		text = strings.ReplaceAll(text, "HOST", "registry.example")
		if _, err := imagevalidating.New(imagevalidating.Options{}).Compile([]byte(text), "test.yaml"); err != nil {
			t.Fatal(err)
		}
		_, err := imagevalidating.New(imagevalidating.Options{}).Compile([]byte(strings.ReplaceAll(text, c.from, c.to)), "test.yaml")
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

package sbom_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/license"
	"github.com/quaymaster/quaymaster/attest/purl"
	"github.com/quaymaster/quaymaster/attest/sbom"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

const (
	spdx2 = `{"spdxVersion":"SPDX-2.3","name":"app","packages":[
		{"SPDXID":"SPDXRef-1","name":"app","versionInfo":"v1","primaryPackagePurpose":"CONTAINER","externalRefs":[
			{"referenceCategory":"PACKAGE-MANAGER","referenceType":"purl","referenceLocator":"pkg:oci/app@sha256:00"}]},
		{"SPDXID":"SPDXRef-2","name":"openssl","versionInfo":"3.0.1-1","licenseConcluded":"NOASSERTION","licenseDeclared":"Apache-2.0","externalRefs":[
			{"referenceCategory":"SECURITY","referenceType":"cpe23Type","referenceLocator":"cpe:2.3:a:openssl:openssl:3.0.1:*:*:*:*:*:*:*"},
			{"referenceCategory":"PACKAGE-MANAGER","referenceType":"purl","referenceLocator":"pkg:deb/debian/openssl@3.0.1-1?arch=amd64"}]},
		{"SPDXID":"SPDXRef-3","name":"lodash","versionInfo":"4.17.20","licenseConcluded":"MIT","licenseDeclared":"GPL-3.0-only","externalRefs":[
			{"referenceCategory":"PACKAGE-MANAGER","referenceType":"purl","referenceLocator":"pkg:npm/lodash@4.17.20"}]}]}`
	spdx3 = `{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld","@graph":[
		{"type":"SpdxDocument","spdxId":"urn:d","rootElement":["urn:1"]},
		{"type":"software_Package","spdxId":"urn:1","name":"app","software_primaryPurpose":"container"},
		{"type":"software_Package","spdxId":"urn:2","name":"openssl","software_packageVersion":"3.0.1-1","software_packageUrl":"pkg:deb/debian/openssl@3.0.1-1?arch=amd64"},
		{"type":"Relationship","spdxId":"urn:r2","from":"urn:2","relationshipType":"hasDeclaredLicense","to":["https://spdx.org/licenses/Apache-2.0"]},
		{"type":"Relationship","spdxId":"urn:r3","from":"urn:2","relationshipType":"hasConcludedLicense","to":["https://spdx.org/rdf/3.0.1/terms/ExpandedLicensing/NoAssertion"]},
		{"type":"Relationship","spdxId":"urn:r4","relationshipType":"hasConcludedLicense","to":["urn:l"],
			"from":{"type":"software_Package","spdxId":"urn:3","name":"lodash","software_packageVersion":"4.17.20",
				"externalIdentifier":[{"type":"ExternalIdentifier","externalIdentifierType":"packageUrl","identifier":"pkg:npm/lodash@4.17.20"}]}},
		{"type":"simplelicensing_LicenseExpression","spdxId":"urn:l","simplelicensing_licenseExpression":"MIT"}]}`
	cyclone = `{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"component":{"type":"container","name":"app","purl":"pkg:oci/app@sha256:00"}},"components":[
		{"type":"operating-system","name":"debian","version":"12","components":[
			{"type":"library","name":"openssl","version":"3.0.1-1","purl":"pkg:deb/debian/openssl@3.0.1-1?arch=amd64","licenses":[{"license":{"id":"Apache-2.0"}}]}]},
		{"type":"library","name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash@4.17.20",
			"licenses":[{"license":{"name":"Some text","acknowledgement":"declared"}},{"expression":"MIT","acknowledgement":"concluded"}]},
		{"type":"file","name":"/etc/passwd"}]}`
)

func decoded(t testing.TB, text string) any {
	t.Helper()
	return testkit.Must(document.Decode([]byte(text)))(t)
}

func ExampleParse() {
	value, _ := document.Decode([]byte(cyclone))
	bill, _ := sbom.Parse(value)
	pattern, _ := purl.Parse("pkg:npm/lodash?vers=vers:npm/<4.17.21")
	for _, p := range bill.Packages {
		holds, err := p.Matches(pattern)
		fmt.Println(p.String(), p.License, holds, err)
	}
	// Output:
	// openssl 3.0.1-1 Apache-2.0 false <nil>
	// lodash 4.17.20 MIT true <nil>
}

func TestParse(t *testing.T) {
	quoted := string(testkit.Must(json.Marshal(cyclone))(t))
	both := []string{"openssl 3.0.1-1 pkg:deb/debian/openssl@3.0.1-1?arch=amd64 Apache-2.0", "lodash 4.17.20 pkg:npm/lodash@4.17.20 MIT"}
	for _, c := range []struct {
		reason, text string
		want         []string
		err          string
	}{
		{"SPDX 2.3", spdx2, both, ""},
		{"SPDX 2.2", strings.Replace(spdx2, "SPDX-2.3", "SPDX-2.2", 1), both, ""},
		{"SPDX 2.1", strings.Replace(spdx2, "SPDX-2.3", "SPDX-2.1", 1), nil, `"SPDX-2.1" is not one of`},
		{"SPDX without packages", `{"spdxVersion":"SPDX-2.3"}`, nil, ""},
		{"SPDX with packages that are no list", `{"spdxVersion":"SPDX-2.3","packages":{}}`, nil, "packages is not a list"},
		{"SPDX with a package without a name", `{"spdxVersion":"SPDX-2.3","packages":[{}]}`, nil, "packages[0] has no name"},
		{"SPDX 3.0", spdx3, both, ""},
		{"SPDX 3.0 without a patch version", strings.Replace(spdx3, "/3.0.1/", "/3.0/", 1), both, ""},
		{"SPDX 3.1", strings.Replace(spdx3, "/3.0.1/", "/3.1.0/", 1), nil, "is not that of SPDX 3.0"},
		{"SPDX 3.0 of another context", strings.Replace(spdx3, "https://spdx.org/rdf", "https://example.com/rdf", 1), nil, "is not that of SPDX 3.0"},
		{"SPDX 3.0 with a package without an identifier", strings.Replace(spdx3, `"spdxId":"urn:2",`, "", 1), nil, "no spdxId"},
		{"SPDX 3.0 with a graph that is no list", `{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld","@graph":{}}`, nil, "@graph is not a list"},
		{"CycloneDX 1.6", cyclone, both, ""},
		{"CycloneDX 1.5", strings.Replace(cyclone, `"1.6"`, `"1.5"`, 1), both, ""},
		{"CycloneDX 1.4", strings.Replace(cyclone, `"1.6"`, `"1.4"`, 1), both, ""},
		{"CycloneDX 1.3", strings.Replace(cyclone, `"1.6"`, `"1.3"`, 1), nil, `"1.3" is not one of`},
		{"CycloneDX 2.0", strings.Replace(cyclone, `"1.6"`, `"2.0"`, 1), nil, `"2.0" is not one of`},
		{"CycloneDX of another format", strings.Replace(cyclone, `"CycloneDX"`, `"Cyclone"`, 1), nil, "is not one of"},
		{"CycloneDX with a component without a name", strings.Replace(cyclone, `"name":"openssl",`, "", 1), nil, "components[0].components[0] has no name"},
		{"CycloneDX with components that are no list", `{"bomFormat":"CycloneDX","specVersion":"1.6","components":"none"}`, nil, "components is not a list"},
		{"CycloneDX with a main component without a name", `{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"component":{}}}`, nil, "metadata.component has no name"},
		{"a text, as cosign wraps it", `{"Data":` + quoted + `,"Timestamp":"2026-01-01T00:00:00Z"}`, both, ""},
		{"a text with a member twice", `{"Data":"{\"bomFormat\":\"CycloneDX\",\"bomFormat\":\"\"}","Timestamp":""}`, nil, "is there twice"},
		{"a text that is too deep", `{"Data":"` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `","Timestamp":""}`, nil, "nested more than"},
		{"SPDX in the tag-value form", `{"Data":"SPDXVersion: SPDX-2.3","Timestamp":""}`, nil, "bill of materials"},
		{"a whole statement", `{"predicateType":"https://cyclonedx.org/bom","predicate":` + cyclone + `}`, both, ""},
		{"CycloneDX with a package URL that is no text", strings.Replace(cyclone, `"pkg:npm/lodash@4.17.20"`, `["pkg:npm/lodash@4.17.20"]`, 1), nil, "components[1]: purl is not a text"},
		{"CycloneDX with a version that is no text", strings.Replace(cyclone, `"4.17.20"`, `4`, 1), nil, "version is not a text"},
		{"CycloneDX with licences that are no list", strings.Replace(cyclone, `[{"license":{"id":"Apache-2.0"}}]`, `"Apache-2.0"`, 1), nil, "licenses is not a list"},
		{"SPDX with references that are no list", `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","externalRefs":{}}]}`, nil, "externalRefs is not a list"},
		{"SPDX with a package URL that is no text", `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","externalRefs":[{"referenceType":"purl","referenceLocator":1}]}]}`, nil, "referenceLocator is not a text"},
		{"SPDX with a licence that is no text", `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","licenseConcluded":1}]}`, nil, "licenseConcluded is not a text"},
		{"SPDX 3.0 with a licence without a list", strings.Replace(spdx3, `"to":["https://spdx.org/rdf/3.0.1/terms/ExpandedLicensing/NoAssertion"]`, `"to":"https://spdx.org/licenses/GPL-3.0-only"`, 1),
			[]string{"openssl 3.0.1-1 pkg:deb/debian/openssl@3.0.1-1?arch=amd64 GPL-3.0-only", both[1]}, ""},
		{"SPDX 3.0 with a package URL that is no text", strings.Replace(spdx3, `"pkg:deb/debian/openssl@3.0.1-1?arch=amd64"`, "1", 1), nil, "software_packageUrl is not a text"},
		{"SPDX 3.0 with an identifier that is no text", strings.Replace(spdx3, `"pkg:npm/lodash@4.17.20"`, "1", 1), nil, "identifier is not a text"},
		{"nothing", `{}`, nil, "it is no JSON of SPDX"},
		{"a list", `[]`, nil, "it is no JSON of SPDX"},
	} {
		bill, err := sbom.Parse(decoded(t, c.text))
		var got []string
		if err == nil {
			for _, p := range bill.Packages {
				got = append(got, p.String()+" "+p.URL+" "+p.License)
			}
		}
		if !slices.Equal(got, c.want) || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v", c.reason, got, err)
		}
	}
}

// TestBounds: a document over the bound is an error that names it.
func TestBounds(t *testing.T) {
	list := strings.Repeat(`{"name":"a"},`, document.MaxEntries)
	for reason, c := range map[string]struct{ text, bound string }{
		"CycloneDX": {`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[` + list + `{"name":"a"}]}`, "MaxEntries"},
		"SPDX 2.3":  {`{"spdxVersion":"SPDX-2.3","packages":[` + list + `{"name":"a"}]}`, "MaxEntries"},
		"SPDX 3.0": {`{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld","@graph":[` +
			strings.ReplaceAll(list, "{", `{"type":"software_Package","spdxId":"a",`) + `{"type":"software_Package","spdxId":"a","name":"a"}]}`, "MaxEntries"},
	} {
		if _, err := sbom.Parse(decoded(t, c.text)); err == nil || !strings.Contains(err.Error(), c.bound) {
			t.Errorf("%s: %v", reason, err)
		}
		at := strings.LastIndex(c.text, ",{")
		if bill, err := sbom.Parse(decoded(t, c.text[:at]+"]}")); err != nil || len(bill.Packages) != document.MaxEntries {
			t.Errorf("%s, as many as the bound: %v", reason, err)
		}
	}
	var refs, licences []string
	for i := range 66 {
		refs = append(refs, `{"referenceType":"purl","referenceLocator":"pkg:npm/a"}`)
		licences = append(licences, fmt.Sprintf(`{"name":"a","licenses":[{"expression":"MIT OR LicenseRef-%d%s"}]}`, i, strings.Repeat(" OR ISC", 2300)))
	}
	for most, text := range map[string]string{
		"64":      `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","externalRefs":[` + strings.Join(refs, ",") + `]}]}`,
		"1048576": `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[` + strings.Join(licences, ",") + `]}`,
	} {
		if _, err := sbom.Parse(decoded(t, text)); err == nil || !strings.Contains(err.Error(), most) {
			t.Errorf("over %s: %v", most, err)
		}
	}
	if _, err := document.Decode(make([]byte, document.MaxBytes+1)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(document.MaxBytes)) {
		t.Errorf("a document of more bytes: %v", err)
	}
}

// one is a bill with one component.
func one(t *testing.T, component string) sbom.Package {
	t.Helper()
	bill := testkit.Must(sbom.Parse(decoded(t, `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[`+component+`]}`)))(t)
	if len(bill.Packages) != 1 {
		t.Fatalf("%s: %d packages", component, len(bill.Packages))
	}
	return bill.Packages[0]
}

func TestMatches(t *testing.T) {
	const below = "pkg:npm/lodash?vers=vers:npm/<4.17.21"
	for _, c := range []struct {
		reason, component, pattern string
		want                       bool
		err                        string
	}{
		{"in the range", `{"name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash@4.17.20"}`, below, true, ""},
		{"above the range", `{"name":"lodash","version":"4.17.21","purl":"pkg:npm/lodash@4.17.21"}`, below, false, ""},
		{"of any version", `{"name":"lodash","version":"4.17.21","purl":"pkg:npm/lodash@4.17.21"}`, "pkg:npm/lodash", true, ""},
		{"another name", `{"name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash-es@4.17.20"}`, below, false, ""},
		{"another type", `{"name":"lodash","version":"4.17.20","purl":"pkg:gem/lodash@4.17.20"}`, below, false, ""},
		{"a version outside of the URL", `{"name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash"}`, below, true, ""},
		{"no version", `{"name":"lodash","purl":"pkg:npm/lodash"}`, below, false, "no version"},
		{"no version where one is meant", `{"name":"lodash","purl":"pkg:npm/lodash"}`, "pkg:npm/lodash@4.17.20", false, "no version"},
		{"no version where any is meant", `{"name":"lodash","purl":"pkg:npm/lodash"}`, "pkg:npm/lodash", true, ""},
		{"no version of another package", `{"name":"other","purl":"pkg:npm/other"}`, below, false, ""},
		{"two versions, one in the range", `{"name":"lodash","version":"4.17.20","purl":"pkg:npm/lodash@4.17.21"}`, below, false, "another version"},
		{"two versions, the other in the range", `{"name":"lodash","version":"9.0.0","purl":"pkg:npm/lodash@4.17.20"}`, below, false, "another version"},
		{"two versions in the range", `{"name":"lodash","version":"4.17.19","purl":"pkg:npm/lodash@4.17.20"}`, below, true, ""},
		{"two versions, one that is none", `{"name":"lodash","version":"4 5","purl":"pkg:npm/lodash@4.17.20"}`, below, false, "another version"},
		{"a version with a letter", `{"name":"a.b/c","version":"1.2.3","purl":"pkg:golang/a.b/c@v1.2.3"}`, "pkg:golang/a.b/c@v1.2.3", true, ""},
		{"a version without the letter", `{"name":"a.b/c","version":"v1.2.3","purl":"pkg:golang/a.b/c@1.2.3"}`, "pkg:golang/a.b/c@1.2.3", true, ""},
		{"an epoch", `{"name":"a","version":"2.0-1","purl":"pkg:deb/debian/a@2.0-1?epoch=1"}`, "pkg:deb/debian/a?vers=vers:deb/%3E1:1.0", true, ""},
		{"a version that is none", `{"name":"a","version":"1","purl":"pkg:apk/alpine/a@%0a"}`, "pkg:apk/alpine/a?vers=vers:apk/<2", false, "is not a version"},
		{"no URL, the same name", `{"name":"Lodash","version":"4.17.20"}`, below, false, "no package URL"},
		{"no URL, the same name in a group", `{"group":"x","name":"lodash","version":"4.17.20"}`, below, false, "no package URL"},
		{"no URL, another name", `{"name":"lodash-es","version":"4.17.20"}`, below, false, ""},
		{"a wrong URL", `{"name":"other","version":"4.17.20","purl":"npm/other"}`, below, false, "package URL"},
		{"a range in place of a version", `{"name":"other","version":"1","purl":"pkg:npm/other?vers=vers:npm/*"}`, below, false, "range in place"},
	} {
		p := one(t, c.component)
		got, err := p.Matches(testkit.Must(purl.Parse(c.pattern))(t))
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
	}
}

func TestSeveralURLs(t *testing.T) {
	document := func(urls ...string) sbom.Package {
		var list []string
		for _, url := range urls {
			list = append(list, `{"referenceType":"purl","referenceLocator":"`+url+`"}`)
		}
		text := `{"spdxVersion":"SPDX-2.3","packages":[{"name":"a","externalRefs":[` + strings.Join(list, ",") + `]}]}`
		return testkit.Must(sbom.Parse(decoded(t, text)))(t).Packages[0]
	}
	pattern := testkit.Must(purl.Parse("pkg:npm/a?vers=vers:npm/<2"))(t)
	for reason, c := range map[string]struct {
		p     sbom.Package
		want  bool
		fails bool
	}{
		"the second":               {document("pkg:gem/a@1", "pkg:npm/a@1"), true, false},
		"the first":                {document("pkg:npm/a@1", "pkg:npm/a@3"), true, false},
		"none":                     {document("pkg:npm/a@2", "pkg:npm/a@3"), false, false},
		"one without a version":    {document("pkg:npm/a", "pkg:npm/a@3"), false, true},
		"one that is none of both": {document("npm/a", "pkg:npm/a@3"), false, true},
	} {
		if got, err := c.p.Matches(pattern); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", reason, got, err)
		}
	}
}

func TestLicences(t *testing.T) {
	allowed := testkit.Must(license.ParseList([]string{"MIT", "Apache-2.0"}))(t)
	forbidden := testkit.Must(license.ParseList([]string{"GPL-3.0-or-later"}))(t)
	for _, c := range []struct {
		reason, licenses   string
		licensed, required string
	}{
		{"one", `[{"license":{"id":"MIT"}}]`, "true", "false"},
		{"another", `[{"license":{"id":"GPL-3.0-only"}}]`, "false", "true"},
		{"an expression", `[{"expression":"MIT OR GPL-3.0-only"}]`, "true", "false"},
		{"two, of which each applies", `[{"license":{"id":"MIT"}},{"license":{"id":"GPL-3.0-only"}}]`, "false", "true"},
		{"a name that is a licence", `[{"license":{"name":"MIT"}}]`, "true", "false"},
		{"a name that is none", `[{"license":{"name":"The MIT License"}}]`, "unknown", "unknown"},
		{"a name that would make an alternative", `[{"license":{"id":"GPL-3.0-only"}},{"license":{"name":"MIT) OR (MIT"}}]`, "unknown", "unknown"},
		{"a concluded one", `[{"license":{"id":"GPL-3.0-only","acknowledgement":"declared"}},{"license":{"id":"MIT","acknowledgement":"concluded"}}]`, "true", "false"},
		{"none", `[]`, "unknown", "unknown"},
		{"an empty one", `[{"license":{}}]`, "unknown", "unknown"},
		{"an empty one next to another", `[{"license":{}},{"license":{"id":"MIT"}}]`, "unknown", "unknown"},
	} {
		p := one(t, `{"name":"a","licenses":`+c.licenses+`}`)
		for name, ask := range map[string]struct {
			answer func(license.List) (bool, error)
			list   license.List
			want   string
		}{"licensed": {p.Licensed, allowed, c.licensed}, "requires": {p.Requires, forbidden, c.required}} {
			holds, err := ask.answer(ask.list)
			got := map[bool]string{true: "unknown", false: fmt.Sprint(holds)}[err != nil]
			if got != ask.want {
				t.Errorf("%s, %s: %s, %v; want %s", c.reason, name, got, err, ask.want)
			}
		}
	}
	bill := testkit.Must(sbom.Parse(decoded(t, strings.Replace(spdx3, `"urn:l"]`, `"urn:set"]`, 1))))(t)
	if _, err := bill.Packages[1].Licensed(allowed); err == nil {
		t.Error("a set of licences in SPDX 3.0: no error")
	}
	none := testkit.Must(sbom.Parse(decoded(t, strings.Replace(spdx2, "MIT", "NONE", 1))))(t)
	if _, err := none.Packages[1].Licensed(allowed); !errors.Is(err, license.ErrUnknown) {
		t.Errorf("NONE: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{spdx2, spdx3, cyclone} {
		f.Add([]byte(text))
	}
	pattern, err := purl.Parse("pkg:npm/lodash?vers=vers:npm/<4.17.21")
	if err != nil {
		f.Fatal(err)
	}
	list, err := license.ParseList([]string{"MIT"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := document.Decode(text)
		if err != nil {
			return
		}
		bill, err := sbom.Parse(value)
		if err != nil {
			return
		}
		for i := range bill.Packages {
			p := &bill.Packages[i]
			if p.Name == "" || len(bill.Packages) > document.MaxEntries {
				t.Errorf("%s: %+v", text, p)
			}
			_, _ = p.Matches(pattern) // must end, without a panic
			suffices, err := p.Licensed(list)
			if required, other := p.Requires(list); err == nil && other == nil && suffices && !required && p.License == "MIT" {
				t.Errorf("%s: the only licence is not required", text)
			}
		}
	})
}

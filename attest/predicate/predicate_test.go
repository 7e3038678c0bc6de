package predicate_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/predicate"
)

func statement(predicateType, body string) attest.Statement {
	return attest.Statement{PredicateType: predicateType, Predicate: json.RawMessage(body)}
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// row is one predicate and its expected reading; the refusing rows differ from an accepting one in
// the one thing that their reason names.
type row struct {
	reason string
	uri    string
	body   string
	want   any
	err    string
}

func check[T any](t *testing.T, parse func(attest.Statement) (T, error), rows []row) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			got, err := parse(statement(row.uri, row.body))
			switch {
			case row.err != "":
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("got %+v, error %v; want an error with %q", got, err, row.err)
				}
			case err != nil:
				t.Error(err)
			case !reflect.DeepEqual(any(got), row.want):
				t.Errorf("got  %+v\nwant %+v", got, row.want)
			}
		})
	}
}

func TestParseProvenance(t *testing.T) {
	v1 := `{"buildDefinition":{"buildType":"https://example.com/build","externalParameters":{"ref":"main"},
		"resolvedDependencies":[{"name":"base","uri":"pkg:oci/base"},{"uri":"git+https://example.com/app","digest":{"gitCommit":"abc"}}]},
		"runDetails":{"builder":{"id":"https://example.com/builder"},"metadata":{"invocationId":"7","startedOn":"2026-05-01T12:00:00Z"}}}`
	v02 := `{"builder":{"id":"https://example.com/builder"},"buildType":"https://example.com/build",
		"invocation":{"configSource":{"uri":"git+https://example.com/app","digest":{"sha1":"abc"}},"parameters":{"ref":"main"}},
		"metadata":{"buildInvocationID":"7","buildFinishedOn":"2026-05-01T12:00:00Z"},
		"materials":[{"uri":"git+https://example.com/app","digest":{"sha1":"abc"}},{"uri":"pkg:oci/base"}]}`
	git := func(algorithm string) predicate.Material {
		return predicate.Material{URI: "git+https://example.com/app", Digest: map[string]string{algorithm: "abc"}}
	}
	base := predicate.Material{URI: "pkg:oci/base"}
	whole := predicate.Provenance{
		BuilderID: "https://example.com/builder", BuildType: "https://example.com/build", Invocation: "7",
		Parameters: map[string]any{"ref": "main"},
	}
	want1, want02 := whole, whole
	named := base
	named.Name = "base"
	want1.Started, want1.Materials = noon, []predicate.Material{named, git("gitCommit")}
	want02.Finished, want02.Materials, want02.ConfigSource = noon, []predicate.Material{git("sha1"), base}, git("sha1")
	check(t, predicate.ParseProvenance, []row{
		{"v1", attest.PredicateSLSAv1, v1, want1, ""},
		{"v0.2, with its source among the materials too", attest.PredicateSLSAv02, v02, want02, ""},
		{"v1 under the type of v0.2", attest.PredicateSLSAv02, v1, nil, "no builder id"},
		{"v1 without builder", attest.PredicateSLSAv1, strings.Replace(v1, `"id":"https://example.com/builder"`, "", 1), nil, "no builder id"},
		{"v0.2 without build type", attest.PredicateSLSAv02, strings.Replace(v02, `"buildType"`, `"type"`, 1), nil, "no build type"},
		{"another type", attest.PredicateSPDX, v1, nil, "is not https://slsa.dev/provenance/v1"},
		{"no predicate", attest.PredicateSLSAv1, ``, nil, "has no predicate"},
		{"null", attest.PredicateSLSAv1, `null`, nil, "has no predicate"},
		{"a time that is none", attest.PredicateSLSAv1, strings.Replace(v1, "2026-05-01T12", "today", 1), nil, "predicate of type"},
	})
	if got := want1.Source(); !reflect.DeepEqual(got, git("gitCommit")) {
		t.Errorf("source %+v, want the repository", got)
	}
	if got := (predicate.Provenance{Materials: []predicate.Material{base}}).Source(); !reflect.DeepEqual(got, base) {
		t.Errorf("source %+v, want the first material where none is a repository", got)
	}
}

func TestParseSummary(t *testing.T) {
	good := `{"verifier":{"id":"https://example.com/verifier"},"timeVerified":"2026-05-01T12:00:00Z","resourceUri":"pkg:oci/app",
		"policy":{"uri":"https://example.com/policy","digest":{"sha256":"abc"}},"verificationResult":"PASSED","verifiedLevels":["SLSA_BUILD_LEVEL_3"]}`
	want := predicate.Summary{
		VerifierID: "https://example.com/verifier", Resource: "pkg:oci/app", Passed: true, Levels: []string{"SLSA_BUILD_LEVEL_3"},
		Verified: noon, Policy: "https://example.com/policy", PolicyDigest: map[string]string{"sha256": "abc"},
	}
	failed := want
	failed.Passed = false
	check(t, predicate.ParseSummary, []row{
		{"passed", attest.PredicateVSA, good, want, ""},
		{"failed", attest.PredicateVSA, strings.Replace(good, "PASSED", "FAILED", 1), failed, ""},
		{"another result", attest.PredicateVSA, strings.Replace(good, "PASSED", "passed", 1), nil, "neither PASSED nor FAILED"},
		{"no verifier", attest.PredicateVSA, strings.Replace(good, "https://example.com/verifier", "", 1), nil, "no verifier id"},
		{"no resource", attest.PredicateVSA, strings.Replace(good, "pkg:oci/app", "", 1), nil, "no resource URI"},
	})
}

func TestParseGeneric(t *testing.T) {
	good := `{"Data":"foo\n","Timestamp":"2026-05-01T12:00:00Z"}`
	check(t, predicate.ParseGeneric, []row{
		{"text", attest.PredicateCustom, good, predicate.Generic{Data: "foo\n", Timestamp: noon}, ""},
		{"JSON", attest.PredicateCustom, `{"Data":{"a":1}}`, predicate.Generic{Data: `{"a":1}`}, ""},
		{"no data", attest.PredicateCustom, `{}`, nil, "no Data"},
		{"a time that is none", attest.PredicateCustom, strings.Replace(good, "2026", "26", 1), nil, "Timestamp"},
	})
}

func TestValue(t *testing.T) {
	check(t, predicate.Value, []row{
		{"any type", "https://example.com/any", `{"a":[1,"b",true,null]}`, map[string]any{"a": []any{1.0, "b", true, nil}}, ""},
		{"text", "https://example.com/any", `"a"`, "a", ""},
		{"absent", "https://example.com/any", ``, nil, "has no predicate"},
		{"no JSON", "https://example.com/any", `{`, nil, "predicate of type"},
	})
}

// FuzzPredicates: no reader panics, and each error is one of its own or of JSON.
func FuzzPredicates(f *testing.F) {
	f.Add(`{"builder":{"id":"b"},"buildType":"t","materials":[{}]}`)
	f.Add(`{"Data":"x","Timestamp":""}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, uri := range []string{attest.PredicateSLSAv1, attest.PredicateSLSAv02} {
			if p, err := predicate.ParseProvenance(statement(uri, body)); err == nil && p.BuilderID == "" {
				t.Error("provenance without a builder")
			}
		}
		if v, err := predicate.ParseSummary(statement(attest.PredicateVSA, body)); err == nil && v.VerifierID == "" {
			t.Error("summary without a verifier")
		}
		_, _ = predicate.ParseGeneric(statement(attest.PredicateCustom, body))
		_, _ = predicate.Value(statement("any", body))
	})
}

// TestHalfRead: a predicate with a part of another kind is none, although the rest can be
// read.
func TestHalfRead(t *testing.T) {
	parse := map[string]func(attest.Statement) error{
		attest.PredicateSLSAv02: func(s attest.Statement) error { _, err := predicate.ParseProvenance(s); return err },
		attest.PredicateVSA:     func(s attest.Statement) error { _, err := predicate.ParseSummary(s); return err },
		attest.PredicateCustom:  func(s attest.Statement) error { _, err := predicate.ParseGeneric(s); return err },
	}
	for _, test := range []struct{ uri, body, from, to string }{
		{attest.PredicateSLSAv02, `{"builder":{"id":"b"},"buildType":"t","materials":[]}`, "[]", "5"},
		{attest.PredicateVSA, `{"verifier":{"id":"v"},"resourceUri":"r","verificationResult":"PASSED","timeVerified":"2026-05-01T12:00:00Z","verifiedLevels":[]}`, "[]", "5"},
		{attest.PredicateCustom, `{"Data":"x","Timestamp":""}`, `""`, "5"},
	} {
		if err := parse[test.uri](statement(test.uri, test.body)); err != nil {
			t.Errorf("%s: %v", test.body, err)
		}
		broken := strings.Replace(test.body, test.from, test.to, 1)
		if err := parse[test.uri](statement(test.uri, broken)); err == nil {
			t.Errorf("%s was read", broken)
		}
	}
	unnamed := statement(attest.PredicateSLSAv02, `{"builder":{"id":"b"},"buildType":"t","materials":[{"digest":{"sha1":"abc"}}]}`)
	if p, err := predicate.ParseProvenance(unnamed); err != nil || len(p.Materials) != 1 {
		t.Errorf("a material without an address: got %+v, %v; want it to be kept", p, err)
	}
}

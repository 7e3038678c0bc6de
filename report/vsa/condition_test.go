package vsa_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/vsa"
)

// TestCondition begins with a summary that holds and turns one thing wrong at a time.
func TestCondition(t *testing.T) {
	const verifier, resource = "https://gateway.example/verifier", "registry.example/web@sha256:00"
	terms := vsa.Terms{Verifier: verifier, MaxAge: time.Hour, PolicyDigest: "sha256:ab"}
	now := time.Now()
	for _, c := range []struct {
		change func(summary map[string]any)
		why    string // empty: it holds
		reason string
	}{
		{func(map[string]any) {}, "", "as the verifier signs it"},
		{func(s map[string]any) { s["timeVerified"] = now.Add(4 * time.Minute) }, "", "a clock that leads a little"},
		{func(s map[string]any) { s["verifiedLevels"] = []string{"SLSA_BUILD_LEVEL_3"} }, "", "levels of others' vocabularies"},
		{func(s map[string]any) { s["verifier"] = map[string]any{"id": verifier + "/other"} }, "is of the verifier", "another verifier with a similar id"},
		{func(s map[string]any) { delete(s, "verifier") }, "verifier id", "no verifier"},
		{func(s map[string]any) { s["resourceUri"] = "registry.example/web@sha256:01" }, "is about", "another image"},
		{func(s map[string]any) { delete(s, "resourceUri") }, "resource URI", "no image"},
		{func(s map[string]any) { s["verificationResult"] = "FAILED" }, "failed", "an image that failed"},
		{func(s map[string]any) { s["verificationResult"] = "passed" }, "neither PASSED nor FAILED", "a result in other letters"},
		{func(s map[string]any) { delete(s, "verificationResult") }, "neither PASSED nor FAILED", "no result"},
		{func(s map[string]any) { s["verifiedLevels"] = []string{vsa.Failed} }, "failed", "a pass with a level of failure"},
		{func(s map[string]any) { delete(s, "timeVerified") }, "no time", "no time"},
		{func(s map[string]any) { s["timeVerified"] = now.Add(-61 * time.Minute) }, "at most 1h0m0s", "a minute too old"},
		{func(s map[string]any) { s["timeVerified"] = now.Add(6 * time.Minute) }, "in the future", "a time that has not come"},
		{func(s map[string]any) { s["policy"] = map[string]any{"digest": map[string]any{"sha256": "ac"}} }, "other policies", "other policies"},
		{func(s map[string]any) { s["policy"] = map[string]any{"digest": map[string]any{"sha512": "ab"}} }, "other policies", "the digest under another algorithm"},
		{func(s map[string]any) { delete(s, "policy") }, "other policies", "no policies"},
		{func(s map[string]any) { s["verifiedLevels"] = "SLSA_BUILD_LEVEL_3" }, "want a list, found string", "another type"},
	} {
		summary := map[string]any{
			"verifier": map[string]any{"id": verifier}, "timeVerified": now.Add(-59 * time.Minute), "resourceUri": resource,
			"policy":             map[string]any{"uri": "https://gateway.example/policies", "digest": map[string]any{"sha256": "ab"}},
			"verificationResult": "PASSED", "verifiedLevels": []string{},
		}
		c.change(summary)
		holds, why, err := vsa.Condition{Terms: terms, Resource: resource}.Holds(summary)
		if err != nil || holds != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v, %q, %v; want %q", c.reason, holds, why, err, c.why)
		}
	}
	anyPolicies := terms
	anyPolicies.PolicyDigest = ""
	holds, why, err := vsa.Condition{Terms: anyPolicies, Resource: resource}.Holds(map[string]any{
		"verifier": map[string]any{"id": verifier}, "timeVerified": now, "resourceUri": resource, "verificationResult": "PASSED",
	})
	if !holds || err != nil {
		t.Errorf("where any policies are accepted, a summary without them: %v, %q, %v", holds, why, err)
	}
	if holds, _, err := (vsa.Condition{Terms: terms, Resource: resource}).Holds(func() {}); holds || err == nil {
		t.Errorf("data that is no JSON: %v, %v", holds, err)
	}
}

// TestConditionLevel: a level is a number of the build track, and each of another form counts as none.
func TestConditionLevel(t *testing.T) {
	for _, c := range []struct {
		reason   string
		levels   []string
		required int
		holds    bool
	}{
		{"the level", []string{"SLSA_BUILD_LEVEL_2"}, 2, true},
		{"a higher one", []string{"SLSA_BUILD_LEVEL_3"}, 2, true},
		{"the highest counts", []string{"SLSA_BUILD_LEVEL_1", "SLSA_BUILD_LEVEL_3", "OTHER"}, 3, true},
		{"none is required", []string{"SLSA_BUILD_LEVEL_UNEVALUATED"}, 0, true},
		{"a lower one", []string{"SLSA_BUILD_LEVEL_1"}, 2, false},
		{"not evaluated", []string{"SLSA_BUILD_LEVEL_UNEVALUATED"}, 1, false},
		{"of the source track", []string{"SLSA_SOURCE_LEVEL_3"}, 1, false},
		{"of the dependencies", []string{"SLSA_DEP_BUILD_LEVEL_3"}, 1, false},
		{"another writing", []string{"SLSA_BUILD_LEVEL_+3", "SLSA_BUILD_LEVEL_03", "slsa_build_level_3", "SLSA_BUILD_LEVEL_3 "}, 1, false},
		{"none", nil, 1, false},
	} {
		holds, why, err := vsa.Condition{Terms: vsa.Terms{Verifier: "v", MaxAge: time.Hour, Level: c.required}, Resource: "r"}.Holds(map[string]any{
			"verifier": map[string]any{"id": "v"}, "timeVerified": time.Now(), "resourceUri": "r", "verificationResult": "PASSED", "verifiedLevels": c.levels,
		})
		if err != nil || holds != c.holds {
			t.Errorf("%s: %v, %q, %v", c.reason, holds, why, err)
		}
	}
}

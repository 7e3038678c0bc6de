package kyverno_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

const twoKeys = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: two-keys}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestors:
      - count: COUNT
        entries:
        - keys:
            publicKeys: |
KEYS
      attestations:
      - type: https://example.com/review/v1
        attestors: [{entries: [{keys: {kms: "awskms:///alias/reviewer"}}]}]
        conditions:
        - all: [{key: "{{ author }}", operator: NotEquals, value: "{{ request.userInfo.username }}"}]
`

// TestDecide goes from the document to the decision, with made-up verified claims: the keys
// that signed, and the reviewer's statement.
func TestDecide(t *testing.T) {
	keys := []string{read(t, "k1.pem"), read(t, "k2.pem")}
	tests := []struct {
		count  int
		signed []int // the keys that did
		author string
		want   policy.Result
		code   policy.Code
		reason string
		// condition replaces that of the statement, if it is not empty.
		condition string
	}{
		{2, []int{0, 1}, "bob", policy.Pass, policy.Verified, "both keys, and another user reviewed", ""},
		{2, []int{0}, "bob", policy.Fail, policy.TooFewSigners, "one of two keys", ""},
		{1, []int{1}, "bob", policy.Pass, policy.Verified, "one key is asked for", ""},
		{1, nil, "bob", policy.Fail, policy.Unsigned, "no key", ""},
		{1, []int{0}, "ann", policy.Fail, policy.ConditionFailed, "reviewed by the requester", ""},
		{1, []int{0}, "", policy.Fail, policy.NoAttestation, "not reviewed", ""},
		{1, []int{0}, "bob", policy.Pass, policy.Verified, "of a list that does not have the reviewer", `operator: AllNotIn, value: ["7"]`},
		{1, []int{0}, "bob", policy.Fail, policy.ConditionFailed, "of a text that is JSON and no list, under which nothing holds in Kyverno", `operator: AllNotIn, value: "7"`},
	}
	for _, test := range tests {
		text := strings.Replace(twoKeys, "COUNT", fmt.Sprint(test.count), 1)
		text = strings.Replace(text, "KEYS\n", "              "+strings.ReplaceAll(strings.TrimSpace(keys[0]+keys[1]), "\n", "\n              ")+"\n", 1)
		if test.condition != "" {
			text = strings.Replace(text, `operator: NotEquals, value: "{{ request.userInfo.username }}"`, test.condition, 1)
		}
		p, err := newCompiler(t, nil).Compile([]byte(text), "test")
		if err != nil {
			t.Fatal(err)
		}
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		s := pod("prod")
		s.User = policy.User{Name: "ann"}
		plan := set.Plan(t.Context(), s, func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{container("ghcr.io/org/app:v1")}, nil
		})
		if len(plan.Checks) != 1 {
			t.Fatalf("%d checks, %+v", len(plan.Checks), plan.Results)
		}
		decision := decide.Check(&plan.Checks[0], func(q policy.Question) policy.Answer {
			if q.Role == attest.Attestation {
				return review(t, test.author)
			}
			for _, i := range test.signed {
				if q.Authority.Key.Ref == keys[i] {
					return policy.Answer{Facts: []verify.Fact{{Role: q.Role, Signer: verify.Signer{KeyFingerprint: fmt.Sprint("key", i)}}}}
				}
			}
			return policy.Answer{}
		})
		if decision.Result != test.want || decision.Reasons[0].Code != test.code {
			t.Errorf("%d of %v by %q: %s %+v; want %s %s: %s", test.count, test.signed, test.author, decision.Result, decision.Reasons, test.want, test.code, test.reason)
		}
	}
}

func review(t *testing.T, author string) policy.Answer {
	t.Helper()
	if author == "" {
		return policy.Answer{}
	}
	predicate, err := json.Marshal(map[string]string{"author": author})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Answer{Facts: []verify.Fact{{
		Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: "reviewer"},
		Statement: &attest.Statement{PredicateType: "https://example.com/review/v1", Predicate: predicate},
	}}}
}

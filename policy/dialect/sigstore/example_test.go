package sigstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/set"
)

func Example() {
	compiler := sigstore.New(sigstore.Options{})
	compiled, err := compiler.Compile([]byte(head+keylessHead+"}}]\n"), "signed.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Version: "v1", Kind: "Pod", Operation: "CREATE"}
	web := policy.Image{Container: "web", Role: "container", Ref: image.MustParse("ghcr.io/org/app:v1")}
	plan, err := compiled.Rules[0].Plan(context.Background(), subject, []policy.Image{web})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, member := range plan.Checks[0].Requirements[0].Members {
		fmt.Println(member.Authority.Name, member.Authority.Keyless.Identities[0])
	}
	// Output: authorities[0].keyless ann@example.com (https://issuer.example)
}

// FuzzCompile: a document that compiles can be evaluated, and any other one is a broken
// policy or no document at all.
func FuzzCompile(f *testing.F) {
	for _, spec := range []string{
		signedByKey, keylessHead + ", trustRootRef: a}}]\n", "  authorities: [{static: {action: fail}}]\n",
		"  policy: {type: cue, data: 'authorityMatches: a: _'}\n  authorities: [{name: a, key: {data: $KEY}}, {static: {action: fail, message: no}}]\n",
		"  policy: {type: rego, includeSpec: true, data: \"package sigstore\\nisCompliant { input.spec }\"}\n  authorities: [{static: {action: pass}}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}]\n",
		"  match: [{resource: pods, version: v1}]\n  authorities: [{key: {kms: 'awskms:///alias/a'}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, data: 'predicate: a: 1'}}]}]\n",
	} {
		f.Add([]byte(fill(f, head+spec)))
	}
	dialect := sigstore.Policies{Compiler: sigstore.New(sigstore.Options{TrustRoots: &trustroot.Roots{}})}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := dialect.Compile(text, "fuzz")
		if err != nil {
			p = dialect.Broken(text, "fuzz", err)
			if p == nil {
				return
			}
		}
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		made := set.Plan(t.Context(), pod("prod"), func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{container("ghcr.io/org/app:v1")}, nil
		})
		for i := range made.Checks {
			if d := decision(t, &made.Checks[i], answers()); d.Result == policy.Pass && made.Checks[i].NeedsProof() && made.Checks[i].Required {
				t.Errorf("%q: admitted without a proof", text)
			}
		}
	})
}

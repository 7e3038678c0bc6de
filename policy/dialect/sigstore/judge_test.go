package sigstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	vulnType       = "https://cosign.sigstore.dev/attestation/vuln/v1"
	provenanceType = "https://slsa.dev/provenance/v0.2"
)

// gap makes the claims of one authority unverifiable: the registry is unavailable.
func gap(of string, others policy.Answers) policy.Answers {
	return func(q policy.Question) policy.Answer {
		answer := others(q)
		if q.Authority.Name == of {
			answer.Gaps = []error{&image.Error{Kind: image.Unavailable, Op: "read", Err: errors.New("no response")}}
		}
		return answer
	}
}

// TestMixed: of authorities that want different things any suffices, and each wants
// all of its own.
func TestMixed(t *testing.T) {
	const (
		either  = "  authorities: [{key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln, policy: {type: cue, data: 'predicate: score: <7'}}]}]\n"
		several = "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}, {name: b, predicateType: slsaprovenance}]}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}, {name: b, predicateType: slsaprovenance}]}]\n"
		refused = "  authorities: [{key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}, {static: {action: fail, message: ask the platform team}}]\n"
	)
	first, second := "authorities[0].key", "authorities[1].key"
	for _, c := range []struct {
		spec   string
		proved policy.Answers
		want   policy.Result
		code   policy.Code
		reason string
	}{
		{either, answers(proof{authority: first}), policy.Pass, policy.Verified, "the signature of one"},
		{either, answers(proof{second, vulnType, `{"score":6}`}), policy.Pass, policy.Verified, "the statement of the other"},
		{either, answers(proof{authority: second}), policy.Fail, policy.Unsigned, "a signature by the authority that must attest"},
		{either, answers(proof{first, vulnType, `{"score":6}`}), policy.Fail, policy.Unsigned, "a statement by the authority that must sign"},
		{either, answers(proof{second, vulnType, `{"score":8}`}), policy.Fail, policy.ConditionFailed, "a statement that the condition does not agree with, which is nearer than no signature"},
		{either, answers(), policy.Fail, policy.Unsigned, "nothing"},
		{either, gap(first, answers()), policy.Indeterminate, policy.Unavailable, "the signature could not be verified"},
		{either, gap(first, answers(proof{second, vulnType, `{"score":6}`})), policy.Pass, policy.Verified, "the signature could not be verified, and the statement is there"},
		{several, answers(proof{first, vulnType, "{}"}, proof{first, provenanceType, "{}"}), policy.Pass, policy.Verified, "both statements of one"},
		{several, answers(proof{first, vulnType, "{}"}, proof{second, provenanceType, "{}"}), policy.Fail, policy.NoAttestation, "one statement of each"},
		{refused, answers(proof{authority: first}), policy.Pass, policy.Verified, "a signature next to an authority that always fails"},
		{refused, answers(), policy.Fail, policy.Unsigned, "nothing next to an authority that always fails"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+c.spec))
			if check.Judge == nil || !check.MutateDigest || !check.Required || len(check.Asks) < 2 {
				t.Fatalf("%+v", check)
			}
			d := decision(t, check, c.proved)
			if d.Result != c.want || d.Reasons[0].Code != c.code || (d.Result == policy.Pass) != (len(d.Facts) > 0) {
				t.Errorf("%s %+v; want %s %s", d.Result, d.Reasons, c.want, c.code)
			}
			if last := d.Reasons[len(d.Reasons)-1]; c.spec == refused && d.Result == policy.Fail && last.Message != "ask the platform team" {
				t.Errorf("the author's words are missing: %+v", d.Reasons)
			}
		})
	}
}

// TestDeclared: what a check can say alone needs no judge.
func TestDeclared(t *testing.T) {
	for _, c := range []struct {
		authorities string
		judged      bool
		reason      string
	}{
		{"[{key: {data: $KEY}}]", false, "one key"},
		{"[{key: {data: $KEY}}, {key: {data: $KEY}, source: [{oci: a.example/b}]}]", false, "two keys and two places"},
		{"[{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}, {name: b, predicateType: spdx}]}]", false, "two statements of one"},
		{"[{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}, {key: {data: $KEY}, attestations: [{name: b, predicateType: vuln}]}]", false, "the same statement of two"},
		{"[{static: {action: pass}}, {key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}]", false, "one passes"},
		{"[{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, data: 'predicate: a: 1'}}]}]", true, "the same statement under another condition"},
		{"[{key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}]", true, "a signature or a statement"},
	} {
		if got := only(t, compile(t, sigstore.Options{}, head+"  authorities: "+c.authorities+"\n")); (got.Judge != nil) != c.judged {
			t.Errorf("%s: judged %t", c.reason, got.Judge != nil)
		}
	}
}

// TestNearestAuthorityFirst: of authorities with different requirements, of which none
// passes, the reason of the nearest match is reported first.
func TestNearestAuthorityFirst(t *testing.T) {
	const spec = head + "  authorities: [{key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln}]}]\n"
	first, second := "authorities[0].key", "authorities[1].key"
	for _, c := range []struct {
		reason string
		misses map[string]verify.Code
		want   []policy.Code
	}{
		{"the second", map[string]verify.Code{first: verify.WrongKey, second: verify.NoLogEntry}, []policy.Code{"no-log-entry", "wrong-key"}},
		{"the first", map[string]verify.Code{first: verify.NoLogEntry, second: verify.WrongKey}, []policy.Code{"no-log-entry", "wrong-key"}},
		{"nothing is no miss", map[string]verify.Code{second: verify.WrongKey}, []policy.Code{"wrong-key", policy.Unsigned}},
		{"equal ones as they are written", nil, []policy.Code{policy.Unsigned, policy.NoAttestation}},
	} {
		d := decision(t, only(t, compile(t, sigstore.Options{}, spec)), func(q policy.Question) policy.Answer {
			code, missed := c.misses[q.Authority.Name]
			if !missed {
				return policy.Answer{}
			}
			return policy.Answer{Rejections: []*verify.Rejection{{Code: code}}}
		})
		var got []policy.Code
		for _, r := range d.Reasons {
			got = append(got, r.Code)
		}
		if d.Result != policy.Fail || !slices.Equal(got, c.want) {
			t.Errorf("%s: %s %q, want %q", c.reason, d.Result, got, c.want)
		}
	}
}

// byWorkflow is a keyless signature of a workflow.
func byWorkflow(name string) policy.Answers {
	return func(q policy.Question) policy.Answer {
		if q.Authority.Name != name {
			return policy.Answer{}
		}
		fact := verify.Fact{Role: q.Role, Signer: verify.Signer{
			ID: "ann", Subject: "https://github.com/org/app/.github/workflows/release.yml@refs/heads/main", Issuer: "https://token.actions.githubusercontent.com",
			Extensions: map[string]string{
				"githubWorkflowTrigger": "push", "githubWorkflowSHA": "abc", "githubWorkflowName": "release",
				"githubWorkflowRepository": "org/app", "githubWorkflowRef": "refs/heads/main",
			},
		}}
		if q.Role == attest.Attestation {
			fact.Statement = &attest.Statement{PredicateType: q.Predicate, Predicate: json.RawMessage(`{"score":6}`)}
		}
		return policy.Answer{Facts: []verify.Fact{fact, fact}}
	}
}

// regoPolicy is a policy over all authorities in Rego, in YAML.
func regoPolicy(rule string) string {
	text, err := json.Marshal("package sigstore\nisCompliant { " + rule + " }")
	if err != nil { // made of our own text only
		panic(err)
	}
	return "{type: rego, data: " + string(text) + "}"
}

// TestAuthorityMatches: what a policy over all authorities is shown, by
// policy-controller's names.
func TestAuthorityMatches(t *testing.T) {
	const three = "  authorities: [{name: a, key: {data: $KEY}}, {name: b, key: {data: $KEY}}, {key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln, policy: {type: cue, data: 'predicate: score: <7'}}]}]\n"
	const twoOfThree = "count(input.authorityMatches) >= 2"
	keys := []string{"authorities[0].key", "authorities[1].key", "authorities[2].key"}
	scan := proof{keys[2], vulnType, `{"score":6}`}
	for _, c := range []struct {
		rule   string
		proved policy.Answers
		want   policy.Result
		code   policy.Code
		reason string
	}{
		{twoOfThree, answers(proof{authority: keys[0]}, proof{authority: keys[1]}), policy.Pass, policy.Verified, "two of three sign"},
		{twoOfThree, answers(proof{authority: keys[0]}, scan), policy.Pass, policy.Verified, "one signs and one states"},
		{twoOfThree, answers(proof{authority: keys[0]}), policy.Fail, policy.Denied, "one of three"},
		{twoOfThree, answers(proof{authority: keys[0]}, proof{keys[2], vulnType, `{"score":8}`}), policy.Fail, policy.Denied, "a statement that the condition does not agree with is no match"},
		{twoOfThree, answers(), policy.Fail, policy.Unsigned, "none passes, and the policy is not asked"},
		{"true", answers(), policy.Fail, policy.Unsigned, "none passes, whatever the policy would say"},
		{twoOfThree, gap(keys[1], answers(proof{authority: keys[0]}, scan)), policy.Indeterminate, policy.Unavailable, "the claim that could not be verified may affect the policy"},
		{twoOfThree, gap(keys[0], answers(proof{authority: keys[0]}, scan)), policy.Indeterminate, policy.Unavailable, "so may a part of it"},
		{"not input.authorityMatches.b", answers(proof{authority: keys[0]}), policy.Pass, policy.Verified, "one that must not pass does not"},
		{"not input.authorityMatches.b", answers(proof{authority: keys[0]}, proof{authority: keys[1]}), policy.Fail, policy.Denied, "one that must not pass does"},
		{"not input.authorityMatches.b", gap(keys[1], answers(proof{authority: keys[0]})), policy.Indeterminate, policy.Unavailable, "whether it does is not known"},
		{`count(input.authorityMatches.a.signatures) == 1; input.authorityMatches.a.signatures[0].id != ""; not input.authorityMatches.a.signatures[0].subject`, answers(proof{authority: keys[0]}, proof{authority: keys[0]}), policy.Pass, policy.Verified, "a key has an id, and a second signature by it does not count"},
		{`x := input.authorityMatches["authority-2"].attestations.scan[_]; x.predicateType == "vuln"; not input.authorityMatches["authority-2"].signatures`, answers(scan), policy.Pass, policy.Verified, "statements by the names of authority and attestation"},
		{`input.authorityMatches["authority-2"].attestations.scan`, answers(proof{authority: keys[0]}), policy.Fail, policy.Denied, "no statement of that name"},
		{`x := input.authorityMatches.a.signatures[_]; x.subject == "https://github.com/org/app/.github/workflows/release.yml@refs/heads/main"; x.issuer == "https://token.actions.githubusercontent.com"; x.githubWorkflowTrigger == "push"; x.githubWorkflowSha == "abc"; x.githubWorkflowName == "release"; x.githubWorkflowRepo == "org/app"; x.githubWorkflowRef == "refs/heads/main"`, byWorkflow(keys[0]), policy.Pass, policy.Verified, "the workflow"},
		{`x := input.authorityMatches["authority-2"].attestations.scan[_]; x.githubWorkflowRef == "refs/heads/main"`, byWorkflow(keys[2]), policy.Pass, policy.Verified, "the workflow of a statement"},
		{`input.authorityMatches.a.signatures[_].githubWorkflowRef == "refs/heads/dev"`, byWorkflow(keys[0]), policy.Fail, policy.Denied, "another branch"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+"  policy: "+regoPolicy(c.rule)+"\n"+three))
			for range 2 { // the second time from memory
				d := decision(t, check, c.proved)
				if d.Result != c.want || d.Reasons[0].Code != c.code || (d.Result == policy.Pass) != (len(d.Facts) > 0) {
					t.Errorf("%s %+v; want %s %s", d.Result, d.Reasons, c.want, c.code)
				}
			}
		})
	}
}

// TestMisnamedAuthority: a name that no authority or attestation has is refused, since "not" would
// hold for everything.
func TestMisnamedAuthority(t *testing.T) {
	const authorities = "  authorities: [{name: a, key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln}]}, {key: {data: $KEY}}]\n"
	for _, c := range []struct{ reason, rule, want string }{
		{"an authority", "not input.authorityMatches.a", ""},
		{"one without a name", `not input.authorityMatches["authority-1"]`, ""},
		{"one that is not there", "not input.authorityMatches.b", "there is no input.authorityMatches.b"},
		{"the name that the second would have", `not input.authorityMatches["authority-0"]`, "there is no"},
		{"a part", "count(input.authorityMatches.a.signatures) > 0", ""},
		{"a misspelt part", "not input.authorityMatches.a.signature", "want one of signatures"},
		{"an attestation", "not input.authorityMatches.a.attestations.scan", ""},
		{"one that is not there", "not input.authorityMatches.a.attestations.scans", "want one of scan"},
		{"one of an authority without any", `not input.authorityMatches["authority-1"].attestations.scan`, "there is no"},
		{"any authority", "some name; input.authorityMatches[name].signatures", ""},
		{"a field of a signature", "input.authorityMatches.a.signatures[_].subject", ""},
	} {
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(fill(t, head+"  policy: "+regoPolicy(c.rule)+"\n"+authorities)), "test.yaml")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestConditionThatCannotBeAsked: whether an authority passes is then not known.
func TestConditionThatCannotBeAsked(t *testing.T) {
	spec := "  policy: " + regoPolicy("not input.authorityMatches.bad") + "\n" +
		"  authorities: [{key: {data: $KEY}}, {name: bad, key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: rego, data: \"package sigstore\\nisCompliant { to_number(input.predicate.n) > 1 }\"}}]}]\n"
	check := only(t, compile(t, sigstore.Options{}, head+spec))
	signed := proof{authority: "authorities[0].key"}
	for predicate, want := range map[string]policy.Result{`{"n":"1"}`: policy.Pass, `{"n":"2"}`: policy.Fail, `{"n":"x"}`: policy.Indeterminate} {
		if d := decision(t, check, answers(signed, proof{"authorities[1].key", vulnType, predicate})); d.Result != want {
			t.Errorf("%s: %s %+v; want %s", predicate, d.Result, d.Reasons, want)
		}
	}
}

// TestExactNumbers: integers past 2^53 reach policies as they are written.
func TestExactNumbers(t *testing.T) {
	const (
		even = `{"n":9007199254740992,"f":10.0}`
		odd  = `{"n":9007199254740993,"f":10.0}`
	)
	for _, c := range []struct {
		reason, policy   string
		holds, fails, no string
	}{
		{"Rego", regoPolicy("input.predicate.n == 9007199254740993; input.predicate.f == 10"), odd, even, `{"n":1e400}`},
		{"Rego, in an order", regoPolicy("input.predicate.n < 9007199254740993; input.predicate.f > 9"), even, odd, `{"n":"1","f":10}`},
		{"CUE", "{type: cue, data: 'predicate: {n: 9007199254740993, f: 10}'}", odd, even, `{"n":1e400}`},
		{"CUE, in an order", "{type: cue, data: 'predicate: {n: <9007199254740993, f: int & >9}'}", even, odd, `{`},
	} {
		check := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: "+c.policy+"}]}]\n"))
		for text, want := range map[string]policy.Result{c.holds: policy.Pass, c.fails: policy.Fail, c.no: policy.Fail} {
			if d := decision(t, check, answers(proof{"authorities[0].key", vulnType, text})); d.Result != want {
				t.Errorf("%s: %s: %s %+v; want %s", c.reason, text, d.Result, d.Reasons, want)
			}
		}
	}
	// What an authority proved is shown to the policy over all by what its statements say.
	spec := "  policy: " + regoPolicy("count(input.authorityMatches.a.attestations.scan) == 1") + "\n" +
		"  authorities: [{name: a, key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln, policy: " + regoPolicy("input.predicate.n <= 9007199254740992") + "}]}]\n"
	check := only(t, compile(t, sigstore.Options{}, head+spec))
	for text, want := range map[string]policy.Result{even: policy.Pass, odd: policy.Fail} {
		if d := decision(t, check, answers(proof{"authorities[0].key", vulnType, text})); d.Result != want {
			t.Errorf("%s: %s %+v; want %s", text, d.Result, d.Reasons, want)
		}
	}
}

func config(platform, user string) policy.ImageManifest {
	os, architecture, _ := strings.Cut(platform, "/")
	architecture, variant, _ := strings.Cut(architecture, "/")
	return policy.ImageManifest{Config: fmt.Appendf(nil, `{"os":%q,"architecture":%q,"variant":%q,"config":{"user":%q}}`, os, architecture, variant, user)}
}

// TestConfig: an image's configurations, as a runtime reads them.
func TestConfig(t *testing.T) {
	const pass = "  authorities: [{static: {action: pass}}]\n"
	const noRoot = `input.config[_]; not root`
	rego := "  policy: {fetchConfigFile: true, type: rego, data: \"package sigstore\\nroot { input.config[_].config.User == \\\"root\\\" }\\nisCompliant { " + noRoot + " }\"}\n"
	cue := "  policy: {fetchConfigFile: true, type: cue, data: 'config: \"linux/arm/v7\": config: User: \"app\"'}\n"
	listed := func(m policy.ImageManifest, os, architecture string) policy.ImageManifest {
		m.Descriptor.Platform = &image.Platform{OS: os, Architecture: architecture}
		return m
	}
	for _, c := range []struct {
		spec   string
		data   []policy.ImageManifest
		err    error
		want   policy.Result
		reason string
	}{
		{rego, []policy.ImageManifest{config("linux/amd64", "app")}, nil, policy.Pass, "an image"},
		{rego, []policy.ImageManifest{config("linux/amd64", "root")}, nil, policy.Fail, "a field in lower case, which a runtime reads all the same"},
		{rego, []policy.ImageManifest{config("linux/amd64", "app"), config("linux/arm64", "root")}, nil, policy.Fail, "one of several platforms"},
		{rego, []policy.ImageManifest{config("linux/amd64", "app"), config("linux/amd64", "root")}, nil, policy.Fail, "two images for one platform"},
		{rego, []policy.ImageManifest{listed(config("linux/amd64", "app"), "linux", "amd64")}, nil, policy.Pass, "listed as its own platform"},
		{rego, []policy.ImageManifest{listed(config("linux/amd64", "app"), "linux", "arm64")}, nil, policy.Fail, "listed as another platform"},
		{rego, []policy.ImageManifest{{Config: []byte("{")}}, nil, policy.Fail, "no configuration"},
		{rego, nil, &image.Error{Kind: image.Unavailable, Op: "read", Err: errors.New("no response")}, policy.Indeterminate, "a configuration that could not be read"},
		{cue, []policy.ImageManifest{config("linux/arm/v7", "app")}, nil, policy.Pass, "a platform with a variant"},
		{cue, []policy.ImageManifest{config("linux/arm/v6", "app")}, nil, policy.Fail, "another variant"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			check := only(t, compile(t, sigstore.Options{}, head+c.spec+pass))
			if check.WantsData != policy.DataEach || !check.MutateDigest || check.Required {
				t.Fatalf("%+v", check)
			}
			judged := check.Judge.Judge(t.Context(), []policy.Given{{Check: check, Answers: answers(), Data: policy.ImageData{Children: c.data}, DataErr: c.err}})
			if d := judged.Decisions[0]; d.Result != c.want {
				t.Errorf("%s %+v; want %s", d.Result, d.Reasons, c.want)
			}
		})
	}
}

// TestUnseen: an image that could not be verified, and a time that is over.
func TestUnseen(t *testing.T) {
	check := only(t, compile(t, sigstore.Options{}, head+"  policy: "+regoPolicy("true")+"\n  authorities: [{static: {action: pass}}, {key: {data: $KEY}}]\n"))
	given := policy.Given{Check: check, Answers: answers()}
	if d := check.Judge.Judge(t.Context(), []policy.Given{given}).Decisions[0]; d.Result != policy.Pass || d.Check != check {
		t.Errorf("%s %+v", d.Result, d.Reasons)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if d := check.Judge.Judge(over, []policy.Given{given}).Decisions[0]; d.Result != policy.Indeterminate {
		t.Errorf("the time is over: %s %+v", d.Result, d.Reasons)
	}
	given.Err = &image.Error{Kind: image.NotFound, Op: "resolve", Err: errors.New("no such tag")}
	if d := check.Judge.Judge(t.Context(), []policy.Given{given}).Decisions[0]; d.Result != policy.Indeterminate || d.Reasons[0].Code != policy.ImageNotFound {
		t.Errorf("no such image: %s %+v", d.Result, d.Reasons)
	}
	if judged := check.Judge.Judge(t.Context(), nil); len(judged.Decisions) != 0 || !judged.Object.Passes() {
		t.Errorf("no image: %+v", judged)
	}
}

// fetched are documents by their addresses.
type fetched map[string]string

func (f fetched) Fetch(_ context.Context, url, _ string) ([]byte, error) {
	if text, ok := f[url]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no response")
}

// TestRemote: a policy at an address, at both levels, must have its checksum.
func TestRemote(t *testing.T) {
	const attested = "predicate: score: <7"
	over := "package sigstore\nisCompliant { input.authorityMatches.a }"
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return strings.ToUpper(hex.EncodeToString(s[:]))
	}
	net := fetched{}
	p := compile(t, sigstore.Options{Fetcher: net}, head+
		"  policy: {type: rego, remote: {url: 'https://policies.example/over', sha256sum: "+sum(over)+"}}\n"+
		"  authorities: [{name: a, key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, remote: {url: 'https://policies.example/scan', sha256sum: "+sum(attested)+"}}}]}]\n")
	ask := func(score int) string {
		made := plan(t, pod("prod"), "ghcr.io/org/app:v1", p)
		if len(made.Checks) == 0 {
			return made.Results[0].Err.Error()
		}
		return string(decision(t, &made.Checks[0], answers(proof{"authorities[0].key", vulnType, fmt.Sprintf(`{"score":%d}`, score)})).Result)
	}
	for _, c := range []struct {
		does         func()
		score        int
		want, reason string
	}{
		{func() {}, 6, "policies.example/scan, SHA-256", "no response"},
		{func() { net["https://policies.example/scan"] = "predicate: _" }, 6, "what stands there has the SHA-256", "another document"},
		{func() { net["https://policies.example/scan"] = attested }, 6, "policy in https://policies.example/over", "the other one is missing"},
		{func() { net["https://policies.example/over"] = over }, 6, "pass", "both are there"},
		{func() {}, 8, "fail", "and hold"},
		{func() { clear(net) }, 6, "pass", "no response any more, and the cached policy has the checksum"},
	} {
		c.does()
		if got := ask(c.score); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.reason, got, c.want)
		}
	}
}

// TestOverallConfigMap: the policy over all authorities is the one that stands in
// the ConfigMap now.
func TestOverallConfigMap(t *testing.T) {
	cluster := configMaps{}
	p := compile(t, sigstore.Options{Lookup: cluster}, head+"  policy: {type: cue, configMapRef: {namespace: rules, name: over, key: cue}}\n  authorities: [{name: a, key: {data: $KEY}}]\n")
	for _, c := range []struct{ text, want, reason string }{
		{"", "not found", "it is not there"},
		{"authorityMatches: a: signatures: [{...}]", "pass", "it holds"},
		{"authorityMatches: b: _", "fail", "changed, it does not"},
		{"spec: _", "spec is not available", "it reads a field that is not in its input"},
	} {
		if c.text != "" {
			cluster["rules/over"] = map[string]any{"cue": c.text}
		}
		made := plan(t, pod("prod"), "ghcr.io/org/app:v1", p)
		var got string
		if len(made.Checks) == 0 {
			got = made.Results[0].Err.Error()
		} else {
			got = string(decision(t, &made.Checks[0], answers(proof{authority: "authorities[0].key"})).Result)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.reason, got, c.want)
		}
	}
}

// secrets are Secrets by namespace/name.
type secrets map[string]map[string][]byte

func (s secrets) Secret(_ context.Context, namespace, name string) (string, map[string][]byte, error) {
	if data, ok := s[namespace+"/"+name]; ok {
		return "Opaque", data, nil
	}
	return "", nil, errors.New("not found")
}

// TestSecrets: keys and certificates in Secrets are those that stand there now.
func TestSecrets(t *testing.T) {
	unquote := func(text string) []byte {
		var out string
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return []byte(out)
	}
	one, other := unquote(newKey(t)), unquote(newKey(t))
	cluster := secrets{}
	p := compile(t, sigstore.Options{Secrets: cluster}, head+"  authorities: [{key: {secretRef: {name: keys}, hashAlgorithm: sha512}}]\n")
	for _, c := range []struct {
		data         map[string][]byte
		want, reason string
	}{
		{nil, "Secret cosign-system/keys: not found", "it is not there"},
		{map[string][]byte{"any": one}, "1", "one entry of any name"},
		{map[string][]byte{"any": append(append([]byte{}, one...), other...)}, "2", "two keys in one entry"},
		{map[string][]byte{"a": one, "b": other}, "want one entry, found 2", "two entries"},
		{map[string][]byte{}, "want one entry, found 0", "no entry"},
		{map[string][]byte{"any": []byte("x")}, "want PEM blocks", "no key"},
	} {
		if c.data != nil {
			cluster["cosign-system/keys"] = c.data
		}
		made := plan(t, pod("prod"), "ghcr.io/org/app:v1", p)
		var got string
		if len(made.Checks) == 0 {
			got = made.Results[0].Err.Error()
		} else {
			got = fmt.Sprint(len(made.Checks[0].Questions()))
			if key := made.Checks[0].Questions()[0].Authority.Key; key.Ref != string(one) || key.Hash != "sha512" {
				t.Errorf("%s: %+v", c.reason, key)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.reason, got, c.want)
		}
	}
}

// TestJudgesConcurrently: one compiled policy judges for many requests at once.
func TestJudgesConcurrently(t *testing.T) {
	p := compile(t, sigstore.Options{}, head+"  policy: "+regoPolicy("count(input.authorityMatches) >= 2")+"\n  authorities: [{key: {data: $KEY}}, {key: {data: $KEY}}]\n")
	first, second := proof{authority: "authorities[0].key"}, proof{authority: "authorities[1].key"}
	var group sync.WaitGroup
	for i := range 8 {
		check := only(t, p)
		group.Go(func() {
			for range 20 {
				proved, want := answers(first), policy.Fail
				if i%2 == 0 {
					proved, want = answers(first, second), policy.Pass
				}
				if judged := check.Judge.Judge(t.Context(), []policy.Given{{Check: check, Answers: proved}}); judged.Decisions[0].Result != want {
					t.Errorf("%+v", judged.Decisions[0])
				}
			}
		})
	}
	group.Wait()
}

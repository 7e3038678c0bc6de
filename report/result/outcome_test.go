package result_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/workload"
)

// TestOfRules: what a rule about an object comes to in a report.
func TestOfRules(t *testing.T) {
	scored, unscored := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}, &policy.Policy{Kind: "Policy", Namespace: "n", Name: "p", Metadata: policy.Metadata{Unscored: true}}
	failed := policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Violated, Message: "no"}}}
	for _, row := range []struct {
		reason string
		rule   policy.RuleResult
		want   result.Status
	}{
		{"nothing is held against it", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule}, result.Pass},
		{"a failure that denies", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Enforce}, result.Fail},
		{"a failure under audit", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Audit}, result.Fail},
		{"its author only warns", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Warn}, result.Warn},
		{"its author does not count failures", policy.RuleResult{Policy: unscored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Enforce}, result.Warn},
		{"it could not be evaluated", policy.RuleResult{Policy: scored, Err: errors.New("gone")}, result.Error},
		{"it could not be verified", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: policy.Ruling{Result: policy.Indeterminate}}, result.Error},
		{"its conditions leave it alone", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Skip: "preconditions"}, result.Skip},
	} {
		got := result.Of(report.Decided{Outcome: gate.Outcome{Rules: []policy.RuleResult{row.rule}}})
		if len(got) != 1 || got[0].Status != row.want {
			t.Errorf("%s: %+v, want %s", row.reason, got, row.want)
		}
	}
}

// TestPropertiesOfExceptions: the words of an exception's author are in the report, and do not
// replace those of the rule.
func TestPropertiesOfExceptions(t *testing.T) {
	exception := &policy.Exception{Namespace: "n", Name: "e", Properties: map[string]string{"ticket": "7", "team": "theirs"}}
	rule := policy.RuleResult{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "p"}, Kind: policy.ValidateRule, Skip: "excepted", Properties: map[string]string{"team": "ours"}}
	for _, row := range []struct {
		reason string
		by     *policy.Exception
		want   map[string]string
	}{
		{"an exception", exception, map[string]string{"ticket": "7", "team": "ours"}},
		{"none", nil, map[string]string{"team": "ours"}},
	} {
		rule.Exception = row.by
		got := result.Of(report.Decided{Outcome: gate.Outcome{Rules: []policy.RuleResult{rule}}})
		if len(got) != 1 || !maps.Equal(got[0].Properties, row.want) {
			t.Errorf("%s: %+v", row.reason, got)
		}
	}
	if len(exception.Properties) != 2 || len(rule.Properties) != 1 {
		t.Error("the properties of the exception or the rule were changed")
	}
}

// TestOfMutations: a mutation rule passes where it is in effect. To a scan, which changes nothing, it is
// where nothing is left to change.
func TestOfMutations(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	for _, row := range []struct {
		reason  string
		rule    policy.RuleResult
		process report.Process
		want    result.Status
		message string
	}{
		{"it changed the object", policy.RuleResult{Changed: true}, report.ProcessAdmission, result.Pass, "the rule changed the object"},
		{"it passed without a change", policy.RuleResult{}, report.ProcessAdmission, result.Pass, "the object is as the rule makes it"},
		{"no patch applied", policy.RuleResult{Skip: "no patches applied", Unchanged: true}, report.ProcessAdmission, result.Skip, "no patches applied"},
		{"no patch is left to apply, in a scan", policy.RuleResult{Skip: "no patches applied", Unchanged: true}, report.ProcessScan, result.Pass, "the object is as the rule makes it"},
		{"it would change the object, in a scan", policy.RuleResult{Changed: true}, report.ProcessScan, result.Pass, "the rule would change the object, which was there before the rule or was changed since"},
		{"its conditions leave the object alone, in a scan", policy.RuleResult{Skip: "preconditions"}, report.ProcessScan, result.Skip, "preconditions"},
		{"it could not be evaluated", policy.RuleResult{Ruling: policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: "no"}}}}, report.ProcessAdmission, result.Error, "no"},
	} {
		row.rule.Policy, row.rule.Kind = p, policy.MutateRule
		got := result.Of(report.Decided{Occasion: report.Occasion{Process: row.process}, Outcome: gate.Outcome{Rules: []policy.RuleResult{row.rule}}})
		if len(got) != 1 || got[0].Status != row.want || got[0].Message != row.message {
			t.Errorf("%s: %+v, want %s", row.reason, got, row.want)
		}
	}
}

// TestSeveralExceptions: all exceptions that exempt an object together are named.
func TestSeveralExceptions(t *testing.T) {
	a, b := &policy.Exception{Namespace: "n", Name: "a", Properties: map[string]string{"ticket": "7"}}, &policy.Exception{Namespace: "n", Name: "b", Properties: map[string]string{"ticket": "8"}}
	for _, row := range []struct {
		reason string
		first  *policy.Exception
		others []*policy.Exception
		want   string
	}{
		{"none", nil, nil, ""},
		{"one", a, nil, "n/a"},
		{"two", a, []*policy.Exception{b}, "n/a,n/b"},
	} {
		rule := policy.RuleResult{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "p"}, Kind: policy.ValidateRule, Skip: "excepted", Exception: row.first, Others: row.others}
		got := result.Of(report.Decided{Outcome: gate.Outcome{Rules: []policy.RuleResult{rule}}})
		if len(got) != 1 || got[0].Exception != row.want || row.want != "" && got[0].Properties["ticket"] != "7" {
			t.Errorf("%s: %+v", row.reason, got)
		}
	}
}

// TestWordsOfAuthors: audit annotations and properties of a rule are properties of its results, about
// objects and images, and those of another policy are not.
func TestWordsOfAuthors(t *testing.T) {
	of := func(name string) *policy.Policy { return &policy.Policy{Kind: "ImageValidatingPolicy", Name: name} }
	judged := func(p *policy.Policy, judge policy.Judge) policy.Decision {
		return policy.Decision{Check: &policy.Check{Policy: p, Rule: p.Name, Judge: judge, Properties: map[string]string{"team": "ours"}}, Result: policy.Pass, Reasons: []policy.Reason{{Code: policy.Verified}}}
	}
	annotated := map[string]string{"ImageValidatingPolicy/one/build": "7", "ImageValidatingPolicy/one/team": "theirs", "ImageValidatingPolicy/oneself/none": "x"}
	rule := policy.RuleResult{
		Policy: of("one"), Kind: policy.ValidateRule, AuditAnnotations: map[string]string{"build": "7", "team": "theirs"}, Properties: map[string]string{"team": "ours"},
	}
	for _, row := range []struct {
		reason  string
		outcome gate.Outcome
		want    map[string]string
	}{
		{"a rule about objects", gate.Outcome{Rules: []policy.RuleResult{rule}}, map[string]string{"build": "7", "team": "ours"}},
		{"a rule about images", gate.Outcome{AuditAnnotations: annotated, Verdicts: []gate.Verdict{{Decisions: []policy.Decision{judged(of("one"), silent{})}}}}, map[string]string{"build": "7", "team": "ours"}},
		{"of another policy", gate.Outcome{AuditAnnotations: annotated, Verdicts: []gate.Verdict{{Decisions: []policy.Decision{judged(of("two"), silent{})}}}}, map[string]string{"team": "ours"}},
		{"a check without a judge has none of its own", gate.Outcome{AuditAnnotations: annotated, Verdicts: []gate.Verdict{{Decisions: []policy.Decision{judged(of("one"), nil)}}}}, map[string]string{"team": "ours"}},
	} {
		got := result.Of(report.Decided{Outcome: row.outcome})
		if len(got) != 1 || !maps.Equal(got[0].Properties, row.want) {
			t.Errorf("%s: %+v, want %v", row.reason, got, row.want)
		}
	}
}

// silent is a judge without decisions.
type silent struct{}

func (silent) Judge(context.Context, []policy.Given) policy.Judgement { return policy.Judgement{} }

const signed = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: signed, annotations: {policies.kyverno.io/category: Supply Chain, policies.kyverno.io/severity: high}}, spec: {
  validationFailureAction: ACTION, webhookTimeoutSeconds: 30, rules: [{name: by-us, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [
    {imageReferences: ["HOST/shop/*"], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]},
    {imageReferences: ["HOST/shop/*"], required: false, mutateDigest: false, verifyDigest: false, attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]}]}]}}`

// TestOfOutcomes: what real gates decide about real images, as lines of reports.
func TestOfOutcomes(t *testing.T) {
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	good, err := env.Signed("good")
	if err != nil {
		t.Fatal(err)
	}
	bad := env.Build("shop/bad", "1", "bad")
	const everything = `{"repositories": ["*"]}`
	for _, row := range []struct {
		reason, action, image string
		override              policy.OverrideEffect
		match                 string
		want                  []string
	}{
		{"it is signed", "Enforce", good.ByDigest(), "", "", []string{"signed by-us pass verified"}},
		{"it is not", "Enforce", bad.Name, "", "", []string{"signed by-us fail unsigned"}},
		{"it is not, under audit", "Audit", bad.Name, "", "", []string{"signed by-us fail unsigned"}},
		{"it does not exist", "Enforce", env.Registry.Host() + "/shop/none:1", "", "", []string{"signed by-us error image-not-found"}},
		{"an override allows it", "Enforce", bad.Name, policy.OverrideAllow, everything, []string{"signed by-us skip override-allowed ImageOverride/bad-day"}},
		{"an audit needs none", "Audit", bad.Name, policy.OverrideAllow, everything, []string{"signed by-us fail unsigned"}},
		{"an override of another image", "Enforce", bad.Name, policy.OverrideAllow, `{"repositories": ["other.example/*"]}`, []string{"signed by-us fail unsigned"}},
		{"a signed image needs none", "Enforce", good.ByDigest(), policy.OverrideAllow, everything, []string{"signed by-us pass verified"}},
		{"an override denies it", "Enforce", good.ByDigest(), policy.OverrideDeny, everything, []string{"signed by-us pass verified", "bad-day deny fail override-denied"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p, err := env.Policy(strings.ReplaceAll(signed, "ACTION", row.action))
			if err != nil {
				t.Fatal(err)
			}
			g, err := env.Gate(p)
			if row.override != "" {
				g, err = env.Overriding(row.override, row.match, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			object, err := workload.Parse([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}, "spec": {"containers": [{"name": "web", "image": "` + row.image + `"}]}}`))
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
			results := result.Of(report.Decided{
				Occasion: report.Occasion{Time: at, Process: report.ProcessScan}, Outcome: g.Decide(t.Context(), gate.Request{Object: object, Pinning: gate.PinNever}),
			})
			var got []string
			for _, r := range results {
				got = append(got, strings.TrimSpace(strings.Join([]string{r.Policy.Name, r.Rule, string(r.Status), string(r.Code), r.Exception}, " ")))
				if r.Resource.UID != "u-1" || r.Image == nil || r.Image.Container != "web" || r.Image.Written != row.image || !r.Time.Equal(at) || r.Process != report.ProcessScan || r.Message == "" {
					t.Errorf("%+v", r)
				}
				if proved := r.Status == result.Pass; proved != (r.Image.Signer != "") || proved != (r.Image.Evidence != "") {
					t.Errorf("signer %q, evidence %q of %s", r.Image.Signer, r.Image.Evidence, r.Status)
				}
				if r.Rule == "by-us" && (r.Policy.Category != "Supply Chain" || r.Policy.Severity != "high" || r.Policy.Hash == "") {
					t.Errorf("%+v", r.Policy)
				}
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// TestOfEntries: of the entries of one rule about one image, the worst counts, in
// whatever order they stand.
func TestOfEntries(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	for _, row := range []struct {
		reason  string
		entries []policy.Result
		want    result.Status
	}{
		{"one passes", []policy.Result{policy.Pass}, result.Pass},
		{"one fails", []policy.Result{policy.Pass, policy.Fail, policy.Skipped}, result.Fail},
		{"one is indeterminate", []policy.Result{policy.Indeterminate, policy.Pass}, result.Error},
		{"one is indeterminate, and one fails", []policy.Result{policy.Indeterminate, policy.Fail}, result.Fail},
		{"one leaves it alone", []policy.Result{policy.Skipped, policy.Pass}, result.Pass},
		{"all leave it alone", []policy.Result{policy.Skipped, policy.Skipped}, result.Skip},
	} {
		var v gate.Verdict
		for _, each := range row.entries {
			v.Decisions = append(v.Decisions, policy.Decision{Check: &policy.Check{Policy: p, Rule: "r"}, Result: each, Reasons: []policy.Reason{{Code: policy.Verified}}})
		}
		for range 2 {
			got := result.Of(report.Decided{Outcome: gate.Outcome{Verdicts: []gate.Verdict{v}}})
			if len(got) != 1 || got[0].Status != row.want {
				t.Errorf("%s: %+v, want %s", row.reason, got, row.want)
			}
			slices.Reverse(v.Decisions)
		}
	}
}

// TestKey: results for the same object and rule have the same key.
func TestKey(t *testing.T) {
	one := result.Result{
		Policy: result.Policy{Kind: "Policy", Namespace: "shop", Name: "p"}, Rule: "r", Resource: report.Resource{Kind: "Pod", Namespace: "shop", Name: "web", UID: "u"},
		Image: &result.Image{Container: "web", Digest: "sha256:1"},
	}
	for _, row := range []struct {
		reason string
		change func(r *result.Result)
		same   bool
	}{
		{"another verdict", func(r *result.Result) { r.Status, r.Message = result.Fail, "no" }, true},
		{"another digest", func(r *result.Result) { r.Image = &result.Image{Container: "web", Digest: "sha256:2"} }, true},
		{"another version of the policy", func(r *result.Result) { r.Policy.Hash = "2" }, true},
		{"another container", func(r *result.Result) { r.Image = &result.Image{Container: "sidecar"} }, false},
		{"the object itself", func(r *result.Result) { r.Image = nil }, false},
		{"another rule", func(r *result.Result) { r.Rule = "s" }, false},
		{"a policy of another namespace", func(r *result.Result) { r.Policy.Namespace = "blog" }, false},
		{"a policy of another kind", func(r *result.Result) { r.Policy.Kind = "NamespacedValidatingPolicy" }, false},
		{"another object of that name", func(r *result.Result) { r.Resource.UID = "v" }, false},
	} {
		other := one
		row.change(&other)
		if (one.Key() == other.Key()) != row.same {
			t.Errorf("%s: %+v and %+v", row.reason, one.Key(), other.Key())
		}
	}
	if one.Policy.String() != "shop/p" || (result.Policy{Name: "p"}).String() != "p" {
		t.Errorf("names %s", one.Policy)
	}
}

// TestAllReasonsAreReported: a result has the code of the gravest reason, and the words of all,
// each once.
func TestAllReasonsAreReported(t *testing.T) {
	unsigned := policy.Reason{Code: policy.Unsigned, Message: "no signature found"}
	own := policy.Reason{Code: policy.Denied, Message: "ask the build team for a signature"}
	check := &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "signed", Action: policy.Audit}
	decision := policy.Decision{Check: check, Result: policy.Fail, Reasons: []policy.Reason{unsigned, own, unsigned}}
	got := result.Of(report.Decided{Outcome: gate.Outcome{Verdicts: []gate.Verdict{{Decisions: []policy.Decision{decision}}}}})
	if len(got) != 1 || got[0].Code != policy.Unsigned || got[0].Message != "no signature found; ask the build team for a signature" {
		t.Errorf("%+v", got)
	}
}

// TestOneLineForEachImage: entries of a rule that are equally bad for an image are one result with
// the messages of all; better entries add nothing.
func TestOneLineForEachImage(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}
	entry := func(is policy.Result, message string) policy.Decision {
		return policy.Decision{Check: &policy.Check{Policy: p, Rule: "r"}, Result: is, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: message}}}
	}
	for _, row := range []struct {
		reason  string
		entries []policy.Decision
		want    string
	}{
		{"two fail", []policy.Decision{entry(policy.Fail, "not by us"), entry(policy.Fail, "not by them")}, "not by us; not by them"},
		{"for one reason", []policy.Decision{entry(policy.Fail, "not by us"), entry(policy.Fail, "not by us")}, "not by us"},
		{"one fails", []policy.Decision{entry(policy.Pass, "by us"), entry(policy.Fail, "not by them"), entry(policy.Skipped, "exempt")}, "not by them"},
		{"two pass", []policy.Decision{entry(policy.Pass, "by us"), entry(policy.Pass, "by them")}, "by us"},
	} {
		got := result.Of(report.Decided{Outcome: gate.Outcome{Verdicts: []gate.Verdict{{Decisions: row.entries}}}})
		if len(got) != 1 || got[0].Message != row.want {
			t.Errorf("%s: %+v, want %q", row.reason, got, row.want)
		}
	}
}

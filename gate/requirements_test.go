package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// loggedBy asks for signatures of so many of the keys, with entries of a log.
func loggedBy(threshold int, signers ...*verifytest.Signer) rule {
	r := signedBy(signers...)
	r.check.Requirements[0].Threshold = threshold
	for _, m := range r.check.Requirements[0].Members {
		m.Authority.Log.Ignore = false
	}
	return r
}

func settings(t testing.TB, list ...requirements.Requirement) *policy.Policy {
	t.Helper()
	for i := range list {
		list[i].Path = fmt.Sprintf("requirements[%d]", i)
		if list[i].Images == nil {
			list[i].Images = []string{"*"}
		}
	}
	return must(requirements.Compile("Settings", "the settings", list))(t)
}

func minimum(age time.Duration) requirements.Requirement {
	return requirements.Requirement{MinimumAge: age}
}

func maximum(age time.Duration) requirements.Requirement {
	return requirements.Requirement{MaximumAge: age}
}

func (h *env) signedAgo(t testing.TB, image gatetest.Image, signer *verifytest.Signer, ago time.Duration) {
	t.Helper()
	must(0, h.SignLegacy(image, verifytest.Claim{Signer: signer, Time: time.Now().Add(-ago)}, nil))(t)
}

func (h *env) requiring(t testing.TB, policies []*policy.Policy, options ...gate.Option) *gate.Gate {
	t.Helper()
	return h.gateOf(t, h, must(set.New(policies...))(t), options...)
}

func codesOf(out gate.Outcome) string {
	var list []string
	for _, r := range out.Verdicts[0].Reasons {
		list = append(list, string(r.Code))
	}
	return strings.Join(list, " ")
}

// TestRequirementWaits: claims are cached, and the verdict that follows from an age is not.
func TestRequirementWaits(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	var c clock
	app := h.Build("app", "v1", "app")
	h.signedAgo(t, app, h.key, 72*time.Hour-10*time.Minute)
	g := h.requiring(t, []*policy.Policy{{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{loggedBy(1, h.key)}}, settings(t, minimum(72*time.Hour))},
		gate.WithClock(c.now), gate.WithAges(gate.Ages{None: 2 * time.Hour, Tag: 2 * time.Hour, Fact: 2 * time.Hour}))
	for _, step := range []struct {
		reason  string
		advance time.Duration
		want    gate.Result
		warm    bool
	}{
		{"cold, too young", 0, gate.Deny, false},
		{"warm, too young", time.Minute, gate.Deny, true},
		{"warm, old enough", 10 * time.Minute, gate.Allow, true},
		{"warm again", time.Minute, gate.Allow, true},
	} {
		c.advance(step.advance)
		out := decide(t, g, app.Name)
		if out.Result != step.want || step.warm && out.Cost.Requests != 0 {
			t.Errorf("%s: %s (%s) with %d requests, want %s", step.reason, out.Result, codesOf(out), out.Cost.Requests, step.want)
		}
	}
}

// TestRequirements: which evidence dates an image.
func TestRequirements(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, plain := h.Build("app", "v1", "app"), h.Build("plain", "v1", "plain")
	h.signedAgo(t, app, h.key, 100*time.Hour)
	h.signedAgo(t, app, h.stranger, time.Hour)
	must(0, h.SignLegacy(plain, byKey(h.key), nil))(t)
	notary := h.Build("notary", "v1", "notary")
	must(0, h.SignNotation(notary, h.notary, verifytest.Notation{}))(t)
	cluster := func(rules ...policy.Rule) *policy.Policy {
		return &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: rules}
	}
	namespaced := cluster(loggedBy(1, h.key))
	namespaced.Name, namespaced.Namespace = "own", "default"
	open := cluster(signedBy(h.key))
	open.FailOpen = true
	audit := loggedBy(1, h.key)
	audit.check.Action = policy.Audit
	skipping := loggedBy(1, h.key)
	skipping.check.Skip = "an exception"
	elsewhere := minimum(time.Hour)
	elsewhere.Namespaces = []string{"prod-*"}
	here := minimum(200 * time.Hour)
	here.Namespaces = []string{"def*"}
	other := minimum(200 * time.Hour)
	other.Images = []string{"*/other*"}
	for _, c := range []struct {
		reason, image string
		policy        *policy.Policy
		requires      []requirements.Requirement
		want          gate.Result
		codes         string
	}{
		{"the first signer's time", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Allow, "verified verified"},
		{"a later signer makes it no younger", app.Name, cluster(loggedBy(1, h.key, h.stranger)), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Allow, "verified verified"},
		{"nor does a threshold", app.Name, cluster(loggedBy(2, h.key, h.stranger)), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Allow, "verified verified"},
		{"nor another rule", app.Name, cluster(underName("a", loggedBy(1, h.stranger)), underName("b", loggedBy(1, h.key))), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Allow, "verified verified verified"},
		{"a signer that no policy names dates nothing", app.Name, cluster(loggedBy(1, h.stranger)), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Deny, "too-young"},
		{"each signer of a threshold must be fresh", app.Name, cluster(loggedBy(2, h.key, h.stranger)), []requirements.Requirement{maximum(72 * time.Hour)}, gate.Deny, "too-few-signers too-old no-verified-time"},
		{"one fresh signer of two suffices", app.Name, cluster(loggedBy(1, h.key, h.stranger)), []requirements.Requirement{maximum(72 * time.Hour)}, gate.Allow, "verified verified"},
		{"a stale one", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{maximum(72 * time.Hour)}, gate.Deny, "too-old no-verified-time"},
		{"the stricter of two", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{minimum(time.Hour), minimum(200 * time.Hour)}, gate.Deny, "too-young"},
		{"another namespace's", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{elsewhere}, gate.Allow, "verified"},
		{"this namespace's", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{here}, gate.Deny, "too-young"},
		{"another image's", app.Name, cluster(loggedBy(1, h.key)), []requirements.Requirement{other}, gate.Allow, "verified"},
		{"without a time", plain.Name, cluster(signedBy(h.key)), []requirements.Requirement{minimum(time.Nanosecond)}, gate.Error, "no-verified-time"},
		{"without a time, for a maximum", plain.Name, cluster(signedBy(h.key)), []requirements.Requirement{maximum(requirements.MaxAge)}, gate.Error, "no-verified-time no-verified-time"},
		{"without a time, under failurePolicy Ignore", plain.Name, open, []requirements.Requirement{maximum(requirements.MaxAge)}, gate.Error, "no-verified-time no-verified-time"},
		{"notation without a timestamp", notary.Name, cluster(notarized(h.notary)), []requirements.Requirement{minimum(time.Nanosecond)}, gate.Error, "no-verified-time"},
		{"by a policy of the namespace, whose author chooses the clock", app.Name, namespaced, []requirements.Requirement{minimum(72 * time.Hour)}, gate.Error, "no-verified-time"},
		{"by a policy under audit", app.Name, cluster(audit), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Allow, "verified verified"},
		{"an exception is for its policy", app.Name, cluster(skipping), []requirements.Requirement{minimum(72 * time.Hour)}, gate.Error, "no-verified-time"},
		{"no policy", app.Name, nil, []requirements.Requirement{minimum(72 * time.Hour)}, gate.Error, "no-verified-time"},
		{"an image that its policy denies", plain.Name, cluster(loggedBy(1, h.stranger)), []requirements.Requirement{minimum(time.Hour)}, gate.Deny, "wrong-key no-verified-time"},
	} {
		policies := []*policy.Policy{settings(t, c.requires...)}
		if c.policy != nil {
			policies = append(policies, c.policy)
		}
		out := decide(t, h.requiring(t, policies), c.image)
		if out.Result != c.want || codesOf(out) != c.codes {
			t.Errorf("%s: %s %s, want %s %s: %+v", c.reason, out.Result, codesOf(out), c.want, c.codes, out.Verdicts[0].Reasons)
		}
	}
}

// namedRule is a rule under a name.
type namedRule struct {
	policy.Rule
	name string
}

func (r namedRule) Name() string { return r.name }

func underName(name string, r policy.Rule) policy.Rule { return namedRule{r, name} }

// TestRequirementDenial: a denial names the time, its source, the age and the bound.
func TestRequirementDenial(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	h.signedAgo(t, app, h.key, 5*time.Hour)
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{loggedBy(1, h.key)}}
	out := decide(t, h.requiring(t, []*policy.Policy{p, settings(t, minimum(72*time.Hour))}), app.Name)
	r := out.Verdicts[0].Reasons[0]
	if r.Code != policy.TooYoung || r.Path != "requirements[0]" || r.Expected != "first signed at least 3 days ago" ||
		!strings.Contains(r.Found, "by the clock of a transparency log: 5h") || !strings.HasPrefix(r.Hint, "wait until ") || r.Where == "" {
		t.Errorf("%+v", r)
	}
	out = decide(t, h.requiring(t, []*policy.Policy{p, settings(t, maximum(time.Hour))}), app.Name)
	if r := out.Verdicts[0].Reasons[0]; r.Code != policy.Code(verify.TooOld) || !strings.Contains(r.Expected, "1h") || !strings.Contains(r.Found, "5h") {
		t.Errorf("%+v", r)
	}
}

// TestRequirementRenewed: a signature that is made anew counts at once, although the old one is cached.
func TestRequirementRenewed(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	var c clock
	app := h.Build("app", "v1", "app")
	h.signedAgo(t, app, h.key, 100*time.Hour)
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{loggedBy(1, h.key)}}
	g := h.requiring(t, []*policy.Policy{p, settings(t, maximum(72*time.Hour))}, gate.WithClock(c.now))
	if out := decide(t, g, app.Name); out.Result != gate.Deny {
		t.Fatalf("%s, want deny", out.Result)
	}
	h.signedAgo(t, app, h.key, time.Minute)
	c.advance(time.Minute)
	if out := decide(t, g, app.Name); out.Result != gate.Allow {
		t.Errorf("%s (%s), want allow", out.Result, codesOf(out))
	}
}

// TestRequirementOverridden: an urgent fix is allowed by an ImageOverride, until its end.
func TestRequirementOverridden(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	var c clock
	app := h.Build("app", "v1", "app")
	h.signedAgo(t, app, h.key, time.Hour)
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{loggedBy(1, h.key)}}
	text := `{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "metadata": {"name": "fix"}, "spec": {"effect": "Allow",
		"reason": "an urgent fix", "expires": "` + time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339) + `", "match": {` + digests(app) + `}}}`
	g := h.overriddenFor(t, []*policy.Policy{p, settings(t, minimum(72*time.Hour))}, []string{text}, gate.WithClock(c.now))
	if out := decide(t, g, app.Name); out.Result != gate.Allow || out.Verdicts[0].Override == nil {
		t.Errorf("%s (%s), want allow by the override", out.Result, codesOf(out))
	}
	c.advance(3 * time.Hour)
	if out := decide(t, g, app.Name); out.Result != gate.Deny || codesOf(out) != "too-young" {
		t.Errorf("%s (%s) after its end, want deny", out.Result, codesOf(out))
	}
}

package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// releaseWorkflow is a builder of level 2 of the repository org/app.
const releaseWorkflow = "https://github.com/org/app/.github/workflows/release.yml@refs/tags/v1"

// buildLevel requires provenance of a level from org/app.
func buildLevel(level int) requirements.Requirement {
	return requirements.Requirement{Provenance: slsa.Terms{Level: level, Source: slsa.Source{Repository: "https://github.com/org/app"}}}
}

// attested adds provenance of the workflow to an image.
func (h *env) attested(t testing.TB, image gatetest.Image, repository string) {
	t.Helper()
	h.attestedBy(t, image, releaseWorkflow, repository, time.Minute)
}

// attestedBy adds provenance of a workflow that ran some time ago.
func (h *env) attestedBy(t testing.TB, image gatetest.Image, workflow, repository string, ago time.Duration) {
	t.Helper()
	signer := must(h.Sigstore.Keyless(verifytest.Identity{
		URI: workflow, Issuer: "https://token.actions.githubusercontent.com", NotBefore: time.Now().Add(-ago),
		Extensions: map[verifytest.Extension]string{verifytest.RunnerEnvironment: "github-hosted", verifytest.SourceRepositoryURI: repository},
	}))(t)
	must(0, h.AttestBundle(image, verifytest.Claim{Signer: signer}, attest.PredicateSLSAv1, map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          "https://actions.github.io/buildtypes/workflow/v1",
			"externalParameters": map[string]any{"workflow": map[string]any{"repository": repository, "ref": "refs/tags/v1"}},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": workflow}},
	}))(t)
}

// TestBuildRequirements: provenance is evidence of its own, in addition to that of policies. What could not be
// read is an error, and not missing provenance.
func TestBuildRequirements(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, fork, bare := h.Build("app", "v1", "app"), h.Build("fork", "v1", "fork"), h.Build("bare", "v1", "bare")
	h.attested(t, app, "https://github.com/org/app")
	h.attested(t, fork, "https://github.com/fork/app")
	child, other := h.Build("child", "a", "child"), h.Build("child", "b", "other")
	index := h.BuildIndex("child", "v1", child, other)
	h.attested(t, index, "https://github.com/org/app")
	own := h.Build("own", "a", "own")
	mixed := h.BuildIndex("own", "v1", own)
	h.attested(t, mixed, "https://github.com/org/app")
	h.attested(t, own, "https://github.com/fork/app")
	must(0, h.SignLegacy(app, byKey(h.key), nil))(t)
	signed := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}}
	byStranger := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.stranger)}}
	open := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)}}
	open.FailOpen = true
	down := registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Status(503)}
	atTag := func(of, child gatetest.Image) string { return of.Name + "@" + child.Manifest.Digest }
	for _, c := range []struct {
		reason, image string
		policies      []*policy.Policy
		requires      []requirements.Requirement
		faults        []registrytest.Fault
		want          gate.Result
		codes         string
	}{
		{"without a policy", app.Name, nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Allow, "verified"},
		{"with a policy", app.Name, []*policy.Policy{signed}, []requirements.Requirement{buildLevel(2)}, nil, gate.Allow, "verified verified"},
		{"the policy's own signer is required, too", app.Name, []*policy.Policy{byStranger}, []requirements.Requirement{buildLevel(2)}, nil, gate.Deny, "wrong-key"},
		{"a higher level", app.Name, nil, []requirements.Requirement{buildLevel(3)}, nil, gate.Deny, "low-build-level"},
		{"two requirements", app.Name, nil, []requirements.Requirement{buildLevel(2), buildLevel(3)}, nil, gate.Deny, "low-build-level"},
		{"another source", fork.Name, nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Deny, "wrong-source"},
		{"none", bare.Name, nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Deny, "no-attestation"},
		{"no response", app.Name, nil, []requirements.Requirement{buildLevel(2)}, []registrytest.Fault{down}, gate.Error, "registry-unavailable"},
		{"no response, under failurePolicy Ignore", app.Name, []*policy.Policy{open}, []requirements.Requirement{buildLevel(2)}, []registrytest.Fault{down}, gate.Error, "registry-unavailable"},
		{"of the index that lists the platform", atTag(index, child), nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Allow, "verified verified"},
		{"of the index, and the platform is another's", atTag(mixed, own), nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Deny, "wrong-source"},
		{"the index", index.Name, nil, []requirements.Requirement{buildLevel(2)}, nil, gate.Allow, "verified"},
		{"provenance dates the image", app.Name, nil, []requirements.Requirement{buildLevel(2), minimum(time.Nanosecond)}, nil, gate.Allow, "verified verified"},
		{"and it is too young", app.Name, nil, []requirements.Requirement{buildLevel(2), minimum(72 * time.Hour)}, nil, gate.Deny, "too-young"},
	} {
		h.Registry.SetFaults(c.faults...)
		out := decide(t, h.requiring(t, append(c.policies, settings(t, c.requires...))), c.image)
		if out.Result != c.want || codesOf(out) != c.codes {
			t.Errorf("%s: %s %s, want %s %s: %+v", c.reason, out.Result, codesOf(out), c.want, c.codes, out.Verdicts[0].Reasons)
		}
	}
}

// TestBuildDates: provenance dates an image if it meets the requirement. Every user of a known builder can make
// another statement about a digest, and choose the time.
func TestBuildDates(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	const stranger = "https://github.com/stranger/own/.github/workflows/build.yml@refs/heads/main"
	type build struct {
		workflow, repository string
		ago                  time.Duration
	}
	own := func(ago time.Duration) build { return build{releaseWorkflow, "https://github.com/org/app", ago} }
	for name, c := range map[string]struct {
		builds []build
		want   gate.Result
		codes  string
	}{
		"young":                {[]build{own(time.Hour)}, gate.Deny, "too-young"},
		"old-enough":           {[]build{own(100 * time.Hour)}, gate.Allow, "verified verified"},
		"built-again":          {[]build{own(100 * time.Hour), own(time.Hour)}, gate.Allow, "verified verified"},
		"earlier-by-another":   {[]build{{stranger, "https://github.com/stranger/own", 100 * time.Hour}, own(time.Hour)}, gate.Deny, "too-young"},
		"earlier-from-another": {[]build{{releaseWorkflow, "https://github.com/fork/app", 100 * time.Hour}, own(time.Hour)}, gate.Deny, "too-young"},
		"later-by-another":     {[]build{{stranger, "https://github.com/stranger/own", time.Hour}, own(100 * time.Hour)}, gate.Allow, "verified verified"},
		"by-another-alone":     {[]build{{stranger, "https://github.com/stranger/own", 100 * time.Hour}}, gate.Deny, "wrong-source"},
	} {
		app := h.Build(name, "v1", name)
		for _, b := range c.builds {
			h.attestedBy(t, app, b.workflow, b.repository, b.ago)
		}
		out := decide(t, h.requiring(t, []*policy.Policy{settings(t, buildLevel(2), minimum(72*time.Hour))}), app.Name)
		if out.Result != c.want || !strings.Contains(codesOf(out), c.codes) {
			t.Errorf("%s: %s %s, want %s %s: %+v", name, out.Result, codesOf(out), c.want, c.codes, out.Verdicts[0].Reasons)
		}
	}
}

// TestLevelAlone: every user of a known builder has builds of its level. Provenance that meets a level alone neither
// dates an image nor verifies it for another policy.
func TestLevelAlone(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	h.attestedBy(t, app, "https://github.com/stranger/own/.github/workflows/build.yml@refs/heads/main", "https://github.com/stranger/own", 100*time.Hour)
	h.signedAgo(t, app, h.key, time.Hour)
	level := requirements.Requirement{Provenance: slsa.Terms{Level: 2}}
	stranger := requirements.Requirement{Provenance: slsa.Terms{Source: slsa.Source{Repository: "https://github.com/stranger/own"}}}
	signed := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{loggedBy(1, h.key)}}
	other := judging{check: policy.Check{Required: true}, action: policy.Enforce, judge: eachSigned(0)}
	requiring := &policy.Policy{Kind: "Test", Name: "other", Hash: "2", Rules: []policy.Rule{other}}
	for reason, c := range map[string]struct {
		policies []*policy.Policy
		requires []requirements.Requirement
		want     gate.Result
	}{
		"the level":               {nil, []requirements.Requirement{level}, gate.Allow},
		"the level dates nothing": {nil, []requirements.Requirement{level, minimum(72 * time.Hour)}, gate.Error},
		"the level dates no image that a policy verifies":   {[]*policy.Policy{signed}, []requirements.Requirement{level, minimum(72 * time.Hour)}, gate.Deny},
		"a named source dates":                              {[]*policy.Policy{signed}, []requirements.Requirement{stranger, minimum(72 * time.Hour)}, gate.Allow},
		"the level verifies nothing that a policy requires": {[]*policy.Policy{requiring}, []requirements.Requirement{level}, gate.Deny},
		"a named source verifies what a policy requires":    {[]*policy.Policy{requiring}, []requirements.Requirement{stranger}, gate.Allow},
	} {
		out := decide(t, h.requiring(t, append(c.policies, settings(t, c.requires...))), app.Name)
		if out.Result != c.want {
			t.Errorf("%s: %s, want %s: %+v", reason, out.Result, c.want, out.Verdicts[0].Reasons)
		}
	}
}

// TestBuildIsPinnedAndWarm: a digest with provenance runs, and a second decision makes no request.
func TestBuildIsPinnedAndWarm(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	h.attested(t, app, "https://github.com/org/app")
	g := h.requiring(t, []*policy.Policy{settings(t, buildLevel(2))}, gate.WithAges(gate.Ages{None: time.Hour, Tag: time.Hour, Fact: time.Hour}))
	for _, isWarm := range []bool{false, true} {
		out := decide(t, g, app.Name)
		if out.Result != gate.Allow || isWarm && out.Cost.Requests != 0 || out.Verdicts[0].Decisions[0].BuildLevel != 2 {
			t.Errorf("warm %t: %s with %d requests, %+v", isWarm, out.Result, out.Cost.Requests, out.Verdicts[0].Decisions)
		}
		if len(out.Patch) != 2 || !strings.HasSuffix(fmt.Sprint(out.Patch[1].Value), "@"+app.Manifest.Digest) {
			t.Errorf("patch %+v, want the digest", out.Patch)
		}
	}
}

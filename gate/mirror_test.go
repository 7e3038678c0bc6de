package gate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/workload"
)

// quays are a source and two targets, which serve it under a prefix.
type quays struct {
	*env
	first, second *gatetest.Yard
}

func newQuays(t *testing.T) *quays {
	t.Helper()
	q := &quays{env: newEnv(t, registrytest.Options{})}
	for _, yard := range []**gatetest.Yard{&q.first, &q.second} {
		server := registrytest.Start(registrytest.Options{})
		t.Cleanup(server.Close)
		*yard = gatetest.New(server, q.Sigstore)
	}
	return q
}

// copyTo puts an image of the same bytes into a target.
func copyTo(yard *gatetest.Yard, of gatetest.Image, content string) gatetest.Image {
	return yard.Build("hub/"+of.Repository, of.Name[strings.LastIndexByte(of.Name, ':')+1:], content)
}

// mirrored makes a gate of one policy and one mapping of the source to both
// targets; more are lines of its entry.
func (q *quays) mirrored(t *testing.T, r policy.Rule, more ...string) *gate.Gate {
	t.Helper()
	return q.mirroredWith(t, r, nil, nil, more...)
}

func (q *quays) mirroredWith(t *testing.T, r policy.Rule, secrets gate.PullSecrets, options []gate.Option, more ...string) *gate.Gate {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: hub}
spec:
  mirrors:
  - sources: [%q]
    targets:
    - location: %s/hub
    - location: %s/hub
`, q.Registry.Host(), q.first.Registry.Host(), q.second.Registry.Host())
	for _, line := range more {
		text += "    " + line + "\n"
	}
	set := must(mirror.NewSet(must(mirror.Parse([]byte(text), "test"))(t)))(t)
	return q.mirroredBy(t, set, r, secrets, options...)
}

func (q *quays) mirroredBy(t *testing.T, set *mirror.Set, r policy.Rule, secrets gate.PullSecrets, options ...gate.Option) *gate.Gate {
	t.Helper()
	return q.mirroredFor(t, q.env, set, r, secrets, options...)
}

// mirroredAt makes a gate that asks other registries than the env.
func (q *quays) mirroredAt(t *testing.T, at gate.Registries, set *mirror.Set, r policy.Rule, options ...gate.Option) *gate.Gate {
	t.Helper()
	return q.mirroredFor(t, at, set, r, nil, options...)
}

func (q *quays) mirroredFor(t *testing.T, at gate.Registries, mirrors *mirror.Set, r policy.Rule, secrets gate.PullSecrets, options ...gate.Option) *gate.Gate {
	t.Helper()
	var policies []*policy.Policy
	if r != nil {
		policies = append(policies, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{r}})
	}
	state := gate.Fixed{Policies: must(set.New(policies...))(t), Mirrors: mirrors, Prover: prover{Snapshot: q.snapshot, ByFormat: verify.ByFormat{
		attest.Cosign: cosign.New(q.snapshot), attest.Bundle: bundle.New(q.snapshot),
	}}}
	options = append([]gate.Option{gate.WithMirrors(must(redirect.New())(t), secrets)}, options...)
	return must(gate.New(gate.Config{Registries: at, State: state}, options...))(t)
}

// only asks about images with a judged name that begins with a prefix.
type only struct {
	rule
	prefix string
}

func (o only) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var named []policy.Image
	for _, i := range images {
		if strings.HasPrefix(i.Ref.String(), o.prefix) {
			named = append(named, i)
		}
	}
	return o.rule.Plan(ctx, s, named)
}

func TestRedirection(t *testing.T) {
	q := newQuays(t)
	app, bad, alone := q.Build("app", "v1", "app"), q.Build("bad", "v1", "bad"), q.Build("alone", "v1", "alone")
	lag := q.Build("lag", "v1", "lag, new")
	for _, signed := range []gatetest.Image{app, alone, lag} {
		must(0, q.SignBundle(signed, byKey(q.key), nil))(t)
	}
	copyTo(q.second, app, "app")
	copyTo(q.first, bad, "bad")
	copyTo(q.first, lag, "lag, old")
	q.first.Registry.PutImage("hub/app", "v1", "other bytes")
	at := func(yard *gatetest.Yard, i gatetest.Image) string {
		return yard.Registry.Host() + "/hub/" + i.Repository + ":v1@" + i.Manifest.Digest
	}
	signed := signedBy(q.key)
	for _, c := range []struct {
		reason   string
		rule     policy.Rule
		settings []string
		pinning  gate.Pinning
		image    string
		want     gate.Result
		patched  string // empty: no patch
		why      policy.Code
	}{
		{"proved, and the second target serves it", signed, nil, gate.PinHere, app.Name, gate.Allow, at(q.second, app), policy.MirrorDiffers},
		{"the same by digest", signed, nil, gate.PinHere, app.ByDigest(), gate.Allow, strings.Replace(at(q.second, app), ":v1@", "@", 1), policy.Mirrored},
		{"unsigned, and a target serves it", signed, nil, gate.PinHere, bad.Name, gate.Deny, "", policy.Unsigned},
		{"proved, and no target has it", signed, nil, gate.PinHere, alone.Name, gate.Allow, alone.Name + "@" + alone.Manifest.Digest, policy.NotMirrored},
		{"no target has it, and the source is not allowed", signed, []string{"otherwise: Deny"}, gate.PinHere, alone.Name, gate.Deny, "", policy.NoMirror},
		{"no policy, and only verified images are redirected", nil, nil, gate.PinHere, bad.Name, gate.Unchecked, "", policy.NotConcerned},
		{"no policy, and the source is not allowed", nil, []string{"otherwise: Deny"}, gate.PinHere, bad.Name, gate.Deny, "", policy.NoMirror},
		{"no policy, and presence will do", nil, []string{"when: Present"}, gate.PinHere, bad.Name, gate.Unchecked, at(q.first, bad), policy.Mirrored},
		{"no policy, and it is not asked", nil, []string{"when: Always"}, gate.PinHere, alone.Name, gate.Unchecked, at(q.first, alone), policy.Mirrored},
		{"unsigned, and it is not asked", signed, []string{"when: Always"}, gate.PinHere, bad.Name, gate.Deny, "", policy.Unsigned},
		{"the target's tag counts, and is not signed", signed, []string{"resolve: Target"}, gate.PinHere, lag.Name, gate.Deny, "", policy.Unsigned},
		{"the source's tag counts, and the target lags behind", signed, nil, gate.PinHere, lag.Name, gate.Allow, lag.Name + "@" + lag.Manifest.Digest, policy.MirrorDiffers},
		{"a template is not changed", signed, nil, gate.PinLater, app.Name, gate.Allow, "", policy.Verified},
		{"a template, and its pods would be denied", signed, []string{"otherwise: Deny"}, gate.PinLater, alone.Name, gate.Deny, "", policy.NoMirror},
		{"it slipped past the redirection", signed, []string{"otherwise: Deny"}, gate.PinDone, app.ByDigest(), gate.Deny, "", policy.NoMirror},
		{"it was left at the source", signed, nil, gate.PinDone, app.ByDigest(), gate.Allow, "", policy.Verified},
		{"it was redirected", signed, []string{"otherwise: Deny"}, gate.PinDone, at(q.second, app), gate.Allow, "", policy.Verified},
		{"a copy of an unsigned image", only{signed, q.Registry.Host()}, nil, gate.PinDone, at(q.first, bad), gate.Deny, "", policy.Unsigned},
		{"written inside the target, by tag: other bytes", only{signed, q.Registry.Host()}, nil, gate.PinHere, q.first.Registry.Host() + "/hub/app:v1", gate.Deny, "", policy.Unsigned},
		{"written inside the target, with the right bytes", only{signed, q.Registry.Host()}, nil, gate.PinHere, q.second.Registry.Host() + "/hub/app:v1", gate.Allow, at(q.second, app), policy.Verified},
		{"written beside the target's prefix, which no source has", only{signed, q.Registry.Host()}, nil, gate.PinHere, q.first.Registry.Host() + "/hubs/bad:v1", gate.Unchecked, "", policy.NotConcerned},
		{"it cannot be changed, and the mapping denies", signed, []string{"otherwise: Deny"}, gate.PinNever, app.ByDigest(), gate.Deny, "", policy.NoMirror},
	} {
		t.Run(c.reason, func(t *testing.T) {
			g := q.mirrored(t, c.rule, c.settings...)
			for _, temperature := range []string{"cold", "warm"} {
				request := pod(t, c.image)
				request.Pinning = c.pinning
				out := g.Decide(t.Context(), request)
				v := out.Verdicts[0]
				said := append(append(codes(v.Reasons), codes(v.Warnings)...), codes(out.Reasons)...)
				if out.Result != c.want || !containsCode(said, c.why) {
					t.Errorf("%s: %s %v, want %s with %s\n%+v\n%+v", temperature, out.Result, said, c.want, c.why, v.Reasons, v.Redirect)
				}
				patched := ""
				for _, op := range out.Patch {
					if op.Op == "replace" {
						patched = fmt.Sprint(op.Value)
					}
				}
				if patched != c.patched {
					t.Errorf("%s: patched to %q, want %q", temperature, patched, c.patched)
				}
			}
		})
	}
}

func containsCode(list []policy.Code, want policy.Code) bool {
	for _, c := range list {
		if c == want {
			return true
		}
	}
	return false
}

// TestRedirectingTwiceIsRedirectingOnce asks again about its result.
func TestRedirectingTwiceIsRedirectingOnce(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	copyTo(q.first, app, "app")
	g := q.mirrored(t, signedBy(q.key), "pullSecrets: [mirror]")
	request := pod(t, app.Name)
	out := g.Decide(t.Context(), request)
	if out.Result != gate.Allow || len(out.Patch) != 2 {
		t.Fatalf("%s, patch %v", out.Result, out.Patch)
	}
	request.Object = must(workload.Apply(request.Object, out.Patch))(t)
	again := g.Decide(t.Context(), request)
	if again.Result != gate.Allow || len(again.Patch) != 0 {
		t.Errorf("%s, patch %v; want it allowed and left alone: %+v", again.Result, again.Patch, again.Verdicts[0].Reasons)
	}
	if n := again.Cost.Requests; n != 0 {
		t.Errorf("%d requests for a copy that is known", n)
	}
}

// here has some Secrets.
type here []string

func (h here) Has(_ context.Context, _, name string) (bool, error) {
	for _, known := range h {
		if known == "broken" {
			return false, errors.New("the lookup broke")
		}
		if known == name {
			return true, nil
		}
	}
	return false, nil
}

func TestPullSecretsOfAMirror(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	copyTo(q.first, app, "app")
	for _, c := range []struct {
		reason  string
		secrets here
		change  func(*gate.Request)
		want    string // operations beside the image's
		warned  bool
	}{
		{"both are there", here{"a", "b"}, nil, `[{add /spec/imagePullSecrets []} {add /spec/imagePullSecrets/- map[name:a]} {add /spec/imagePullSecrets/- map[name:b]}]`, false},
		{"one is missing", here{"b"}, nil, `[{add /spec/imagePullSecrets []} {add /spec/imagePullSecrets/- map[name:b]}]`, true},
		{"the lookup fails", here{"broken"}, nil, `[]`, true},
		{"the pod has one already", here{"a", "b"}, func(r *gate.Request) {
			r.Object = changed(t, r.Object, func(pod map[string]any) {
				pod["spec"].(map[string]any)["imagePullSecrets"] = []any{map[string]any{"name": "a"}, map[string]any{"name": "z"}}
			})
		}, `[{add /spec/imagePullSecrets/- map[name:b]}]`, false},
		{"a pod that exists is not changed", here{"a", "b"}, func(r *gate.Request) { r.Subject.Operation = "UPDATE" }, `[]`, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			g := q.mirroredWith(t, signedBy(q.key), c.secrets, nil, "pullSecrets: [a, b]")
			request := pod(t, app.Name)
			if c.change != nil {
				c.change(&request)
			}
			out := g.Decide(t.Context(), request)
			if out.Result != gate.Allow || len(out.Patch) < 2 {
				t.Fatalf("%s, patch %v, %+v", out.Result, out.Patch, out.Verdicts[0].Reasons)
			}
			if got := fmt.Sprint(out.Patch[2:]); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if warned := containsCode(codes(out.Verdicts[0].Warnings), policy.NoPullSecret); warned != c.warned {
				t.Errorf("warned: %v, want %v: %+v", warned, c.warned, out.Verdicts[0].Warnings)
			}
		})
	}
}

// TestEvidenceElsewhere looks for signatures at the mapping's repositories, in order.
func TestEvidenceElsewhere(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	copied := copyTo(q.first, app, "app")
	third := q.second.Build("signatures/app", "v1", "app")
	stranger := q.Build("stranger", "v1", "stranger")
	must(0, q.SignBundle(stranger, byKey(q.stranger), nil))(t)
	strangers := copyTo(q.first, stranger, "stranger")
	must(0, q.first.SignBundle(strangers, byKey(q.key), nil))(t)
	elsewhere := "evidence: [{repository: '" + q.second.Registry.Host() + "/signatures/{path}'}, Target]"

	g := q.mirrored(t, signedBy(q.key))
	if out := g.Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Deny {
		t.Errorf("unsigned: %s", out.Result)
	}
	must(0, q.first.SignBundle(copied, byKey(q.key), nil))(t)
	g = q.mirrored(t, signedBy(q.key))
	out := g.Decide(t.Context(), pod(t, app.Name))
	if out.Result != gate.Allow {
		t.Fatalf("signed at the target: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	if where := out.Verdicts[0].Decisions[0].Facts[0].Origin.Repository.String(); where != q.first.Registry.Host()+"/hub/app" {
		t.Errorf("the evidence was found at %s", where)
	}
	if out := q.mirrored(t, signedBy(q.key), "evidence: [Source]").Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Deny {
		t.Errorf("signed at the target, and only the source counts: %s", out.Result)
	}
	if out := g.Decide(t.Context(), pod(t, stranger.Name)); out.Result != gate.Allow {
		t.Errorf("signed by another key at the source and by the key at the target: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	must(0, q.second.SignBundle(third, byKey(q.key), nil))(t)
	out = q.mirrored(t, signedBy(q.key), elsewhere).Decide(t.Context(), pod(t, app.Name))
	if out.Result != gate.Allow || out.Verdicts[0].Decisions[0].Facts[0].Origin.Repository.Path() != "signatures/app" {
		t.Errorf("signed in a third place: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
}

// TestASourceThatIsDown proves and redirects from the target alone.
func TestASourceThatIsDown(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	copied := copyTo(q.first, app, "app")
	must(0, q.first.SignBundle(copied, byKey(q.key), nil))(t)
	q.Registry.Close()
	alone := []string{"resolve: Target", "evidence: [Target]", "otherwise: Deny"}
	out := q.mirrored(t, signedBy(q.key), alone...).Decide(t.Context(), pod(t, app.Name))
	if out.Result != gate.Allow || out.Verdicts[0].Redirect.Target.Digest().String() != app.Manifest.Digest {
		t.Errorf("%s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	later := pod(t, app.Name)
	later.Pinning = gate.PinLater
	if out := q.mirrored(t, signedBy(q.key), alone...).Decide(t.Context(), later); out.Result != gate.Allow {
		t.Errorf("its template: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	if out := q.mirrored(t, signedBy(q.key)).Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Error {
		t.Errorf("the source's tag counts: %s", out.Result)
	}
	if out := q.mirrored(t, signedBy(q.stranger), alone...).Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Deny {
		t.Errorf("signed by another: %s", out.Result)
	}
}

// TestBothDigestsAreReported reports the source's digest where the target's counts.
func TestBothDigestsAreReported(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "new")
	copied := copyTo(q.first, app, "old")
	must(0, q.first.SignBundle(copied, byKey(q.key), nil))(t)
	out := q.mirrored(t, signedBy(q.key), "resolve: Target").Decide(t.Context(), pod(t, app.Name))
	v := out.Verdicts[0]
	if out.Result != gate.Allow || v.Pinned.Digest().String() != copied.Manifest.Digest || v.Redirect.Other.String() != app.Manifest.Digest {
		t.Errorf("%s, pinned %s, other %s: %+v", out.Result, v.Pinned, v.Redirect.Other, v.Reasons)
	}
}

// TestRedirectionCosts counts requests: source and target are asked at the same time, and no
// registry when warm.
func TestRedirectionCosts(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	copyTo(q.first, app, "app")
	q.gate(t, signedBy(q.key)).Decide(t.Context(), pod(t, app.Name)) // the host is known from here on
	plain := q.gate(t, signedBy(q.key)).Decide(t.Context(), pod(t, app.Name)).Cost.Requests
	g := q.mirrored(t, signedBy(q.key))
	if cold := g.Decide(t.Context(), pod(t, app.Name)).Cost.Requests; cold != plain+1 {
		t.Errorf("cold: %d requests, want the proof's %d and one", cold, plain)
	}
	if warm := g.Decide(t.Context(), pod(t, app.Name, app.Name)).Cost.Requests; warm != 0 {
		t.Errorf("warm: %d requests", warm)
	}
}

// TestATargetThatFillsItselfByTag is asked for the tag by GET before the digest.
func TestATargetThatFillsItselfByTag(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	copyTo(q.first, app, "app")
	text := fmt.Sprintf(`{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror", "metadata": {"name": "fill"}, "spec": {"mirrors": [
		{"sources": [%q], "targets": [{"location": "%s/hub", "fill": "ByTag"}]}]}}`, q.Registry.Host(), q.first.Registry.Host())
	set := must(mirror.NewSet(must(mirror.Parse([]byte(text), "test"))(t)))(t)
	g := q.mirroredBy(t, set, signedBy(q.key), nil)
	out := g.Decide(t.Context(), pod(t, app.Name+"@"+app.Manifest.Digest))
	if out.Result != gate.Allow || out.Verdicts[0].Redirect.Target.IsZero() {
		t.Fatalf("%s %+v", out.Result, out.Verdicts[0].Redirect)
	}
	asked := q.first.Registry.Requests()
	if len(asked) == 0 || asked[0].Method != http.MethodGet || asked[0].Repository != "hub/app" || asked[0].Reference != "v1" {
		t.Errorf("asked %+v, want a GET of the tag first", asked)
	}
}

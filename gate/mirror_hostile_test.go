package gate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
)

func mapped(t testing.TB, format string, args ...any) *mirror.Set {
	t.Helper()
	return must(mirror.NewSet(must(mirror.Parse(fmt.Appendf(nil, format, args...), "test"))(t)))(t)
}

// TestACopyOfTooManyNames is not judged by some of them.
func TestACopyOfTooManyNames(t *testing.T) {
	q := newQuays(t)
	bad := q.first.Build("all/bad", "v1", "bad")
	for registries, want := range map[int]gate.Result{400: gate.Error, 200: gate.Deny} {
		text := "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: all}\nspec:\n  mirrors:\n"
		for i := range registries {
			if i%200 == 0 {
				text += "  - targets: [{location: '" + q.first.Registry.Host() + "/all'}]\n    evidence: [Target]\n    sources:\n"
			}
			text += fmt.Sprintf("    - r%d.corp\n", i)
		}
		last := fmt.Sprintf("r%d.corp", registries-1)
		g := q.mirroredBy(t, mapped(t, "%s", text), only{signedBy(q.key), last}, nil)
		if out := g.Decide(t.Context(), pod(t, bad.Name)); out.Result != want {
			t.Errorf("a copy of an unsigned image of one of %d registries: %s, want %s", registries, out.Result, want)
		}
	}
}

// tenants is a source that all namespaces may see, and a target that one of them may see, or with
// credentials that never arrive.
type tenants struct {
	*env
	private, hangs string // registries
}

type tenant struct {
	gate.Session
	scope   string
	refused bool
}

func (s tenant) Scope() string { return s.scope }

func (s tenant) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	if s.refused {
		return image.Pinned{}, &image.Error{Kind: image.Refused, Op: "resolve", On: ref.String()}
	}
	return s.Session.Resolve(ctx, ref)
}

func (a tenants) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	if repository.Registry() == a.hangs {
		<-ctx.Done()
		return nil, &image.Error{Kind: image.Unavailable, Op: "look for the credential of", On: repository.String(), Err: ctx.Err()}
	}
	session, err := a.env.Open(ctx, access, repository)
	if repository.Registry() != a.private {
		return tenant{Session: session, scope: "anonymous"}, err
	}
	namespace := access.Workload.Namespace
	return tenant{Session: session, scope: "of " + namespace, refused: namespace != "default"}, err
}

// TestTheTargetsTagIsItsOwnersAlone asks for two namespaces with the same access to the source,
// but not to the target that resolves the tag.
func TestTheTargetsTagIsItsOwnersAlone(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "public")
	private := copyTo(q.first, app, "private")
	owner, other := pod(t, app.Name), pod(t, app.Name)
	other.Subject.Namespace = "other"
	other.Object = changed(t, other.Object, func(pod map[string]any) { pod["metadata"].(map[string]any)["namespace"] = "other" })
	for _, together := range []bool{false, true} {
		g := q.mirroredAt(t, tenants{env: q.env, private: q.first.Registry.Host()}, q.hub(t, `"when": "Present", "resolve": "Target"`), nil)
		out := make([]gate.Outcome, 2)
		if together {
			out = g.DecideAll(t.Context(), []gate.Request{owner, other}, nil)
		} else {
			out[0], out[1] = g.Decide(t.Context(), owner), g.Decide(t.Context(), other)
		}
		for i, want := range []string{private.Manifest.Digest, app.Manifest.Digest} {
			if got := out[i].Verdicts[0].Pinned.Digest().String(); got != want {
				t.Errorf("together %v, namespace %d: %s, want %s", together, i, got, want)
			}
		}
	}
}

// hub maps the source to the first target.
func (q *quays) hub(t *testing.T, more string) *mirror.Set {
	t.Helper()
	return mapped(t, `{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror", "metadata": {"name": "hub"}, "spec": {"mirrors": [
		{"sources": [%q], "targets": [{"location": "%s/hub"}], %s}]}}`, q.Registry.Host(), q.first.Registry.Host(), more)
}

// TestCredentialsOfATargetThatDoNotCome are waited for as long as a target is, and
// once.
func TestCredentialsOfATargetThatDoNotCome(t *testing.T) {
	t.Parallel() // it waits for a registry that does not answer
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	for otherwise, want := range map[string]gate.Result{"Source": gate.Allow, "Deny": gate.Error} {
		g := q.mirroredAt(t, tenants{env: q.env, hangs: q.first.Registry.Host()}, q.hub(t, `"otherwise": "`+otherwise+`"`), signedBy(q.key), gate.WithTimeout(3*time.Second))
		for _, temperature := range []string{"cold", "warm"} {
			started := time.Now()
			out := g.Decide(t.Context(), pod(t, app.Name))
			if took := time.Since(started); out.Result != want || took > 2*time.Second {
				t.Errorf("%s: %s after %s, want %s after a third of 3 s: %+v", temperature, out.Result, took, want, out.Verdicts[0].Reasons)
			}
		}
	}
}

// lengths notes how long the entries of a store are.
type lengths []int

func (*lengths) Get(context.Context, []string) map[string][]byte { return nil }
func (l *lengths) Keep(_ string, value []byte, _ time.Duration)  { *l = append(*l, len(value)) }

// TestFactsOfALaterPlaceAreKeptOnce asks for an image again and again that never has
// all its signatures.
func TestFactsOfALaterPlaceAreKeptOnce(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	copied := copyTo(q.first, app, "app")
	must(0, q.first.SignBundle(copied, byKey(q.key), nil))(t)
	both := signedBy(q.key, q.stranger)
	both.check.Requirements[0].Threshold = 2
	kept := &lengths{}
	g := q.mirroredWith(t, both, nil, []gate.Option{gate.WithStore(kept)})
	for range 5 {
		if out := g.Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Deny {
			t.Fatalf("%s: one of two signatures is missing", out.Result)
		}
	}
	if last := (*kept)[len(*kept)-1]; last >= 2*(*kept)[0] {
		t.Errorf("the entries grow: %v", *kept)
	}
	must(0, q.SignBundle(app, byKey(q.stranger), nil))(t)
	g = q.mirrored(t, both)
	for range 2 {
		if out := g.Decide(t.Context(), pod(t, app.Name)); out.Result != gate.Allow {
			t.Errorf("%s: each place has one of two signatures", out.Result)
		}
	}
}

// TestDenyOfAnotherEntry does not deny an image of an entry that would leave it at its source.
func TestDenyOfAnotherEntry(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	for otherwise, want := range map[string]gate.Result{"Source": gate.Unchecked, "Deny": gate.Error} {
		set := mapped(t, `{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror", "metadata": {"name": "two"}, "spec": {"mirrors": [
			{"sources": [%q], "when": "Present", "otherwise": %q, "targets": [{"location": "%s/hub"}]},
			{"sources": ["other.example"], "otherwise": "Deny", "targets": [{"location": "%[3]s/other"}]}]}}`, q.Registry.Host(), otherwise, q.first.Registry.Host())
		g := q.mirroredAt(t, tenants{env: q.env, hangs: q.Registry.Host()}, set, nil, gate.WithTimeout(100*time.Millisecond))
		if out := g.Decide(t.Context(), pod(t, app.Name)); out.Result != want {
			t.Errorf("%s: %s, want %s: %+v", otherwise, out.Result, want, out.Verdicts[0].Reasons)
		}
	}
}

// foremost asks about the first image alone.
type foremost struct{ rule }

func (f foremost) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	return f.rule.Plan(ctx, s, images[:1])
}

// TestDuplicateImage redirects both, of which a policy matches one.
func TestDuplicateImage(t *testing.T) {
	q := newQuays(t)
	app := q.Build("app", "v1", "app")
	copyTo(q.first, app, "app")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	for _, c := range []struct {
		settings []string
		want     gate.Result
		second   bool // it is redirected
	}{
		{[]string{"when: Present", "otherwise: Deny"}, gate.Allow, true},
		{[]string{"when: Present"}, gate.Allow, true},
		{[]string{"when: Verified"}, gate.Allow, false},
		{[]string{"when: Verified", "otherwise: Deny"}, gate.Deny, false},
	} {
		out := q.mirrored(t, foremost{signedBy(q.key)}, c.settings...).Decide(t.Context(), pod(t, app.Name, app.Name))
		r := out.Verdicts[1].Redirect
		if out.Result != c.want || r.Target.IsZero() == c.second {
			t.Errorf("%v: %s, want %s; the second: %+v", c.settings, out.Result, c.want, r)
		}
	}
}

// TestATransformedCopyIsProvedAndNotPinned is judged by its source's name, too, though it cannot
// be pinned.
func TestATransformedCopyIsProvedAndNotPinned(t *testing.T) {
	q := newQuays(t)
	app, bad := q.Build("app", "v1", "app"), q.Build("bad", "v1", "bad")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	for made, want := range map[string]gate.Result{copyTo(q.first, app, "app").Name: gate.Allow, copyTo(q.first, bad, "bad").Name: gate.Deny} {
		for _, pinning := range []gate.Pinning{gate.PinHere, gate.PinDone} {
			g := q.mirrored(t, transforming{extracting{digestRule(signedBy(q.key), true, false), "default"}})
			out := g.Decide(t.Context(), gate.Request{Object: checkEvaluation(t, "image="+made, ""), Pinning: pinning})
			if out.Result != want {
				t.Errorf("%s, pinning %q: %s, want %s: %+v", made, pinning, out.Result, want, out.Verdicts[0].Reasons)
			}
		}
	}
}

// TestPlacesAreBounded does not go from place to place for a copy that many share,
// and does not call it unsigned either.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel() // it waits for a registry that does not answer
	q := newQuays(t)
	copied := q.first.Build("all/app", "v1", "app")
	text := "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: all}\nspec:\n  mirrors:\n  - targets: [{location: '" +
		q.first.Registry.Host() + "/all'}]\n    sources:\n"
	for i := range 20 {
		text += fmt.Sprintf("    - 127.0.0.1:%d\n", i+1) // closed ports
	}
	asks := only{signedBy(q.key), "127.0.0.1:20/"}
	out := q.mirroredBy(t, mapped(t, "%s", text), asks, nil).Decide(t.Context(), pod(t, copied.Name))
	if out.Result != gate.Error || !containsCode(codes(out.Verdicts[0].Reasons), policy.TooMuch) && !containsCode(codes(out.Verdicts[0].Reasons), policy.Unavailable) {
		t.Errorf("unsigned, as far as one can see: %s %v", out.Result, codes(out.Verdicts[0].Reasons))
	}
	must(0, q.first.SignBundle(copied, byKey(q.key), nil))(t)
	if out := q.mirroredBy(t, mapped(t, "%s", text), asks, nil).Decide(t.Context(), pod(t, copied.Name)); out.Result != gate.Allow {
		t.Errorf("signed beside the copy: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
}

// tired is a health that has a registry rest.
type tired string

func (t tired) Rest(registry string) (string, bool) { return "it is tired", registry == string(t) }
func (tired) Told(string, error)                    {}

// TestARestingTargetIsNotAskedForEvidence costs nothing, and is an error.
func TestARestingTargetIsNotAskedForEvidence(t *testing.T) {
	q := newQuays(t)
	bad := q.Build("bad", "v1", "bad")
	copyTo(q.first, bad, "bad")
	chooser := must(redirect.New(redirect.WithHealth(tired(q.first.Registry.Host()))))(t)
	out := q.mirroredWith(t, signedBy(q.key), nil, []gate.Option{gate.WithMirrors(chooser, nil)}).Decide(t.Context(), pod(t, bad.Name))
	if out.Result != gate.Error || q.first.Registry.Count("") != 0 {
		t.Errorf("%s, and %d requests to a registry that rests", out.Result, q.first.Registry.Count(""))
	}
}

package catalog_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func trustRootText(name, more string) string {
	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	return fmt.Sprintf(`{"apiVersion": "policy.sigstore.dev/v1alpha1", "kind": "TrustRoot", "metadata": {"name": %q}, "spec": {"sigstoreKeys": {
"certificateAuthorities": [{"subject": {"organization": "o", "commonName": "c"}, "uri": "https://fulcio.example", "certChain": %q}]%s}}}`,
		name, base64.StdEncoding.EncodeToString(sigstore.CA.ChainPEM()), more)
}

// TestTrustRoots: the trusted roots follow the documents as they come, change, break and go;
// of two with one name the first counts.
func TestTrustRoots(t *testing.T) {
	roots := &trustroot.Roots{}
	cat, _ := newCatalog(t, func(o *catalog.Options) {
		o.TrustRoots = roots
		o.Selects = func(map[string]string) bool { return false } // it is not asked about TrustRoots
	})
	good, other := trustRootText("ours", ""), trustRootText("ours", "")
	trusted := func() string { text, _ := roots.TrustedRoot("ours"); return string(text) }
	for _, step := range []struct {
		reason string
		do     func()
		state  catalog.State // of the first entry; empty: there is none
		fails  string        // empty: it is trusted
	}{
		{"nothing", func() {}, "", "there is no TrustRoot"},
		{"it comes", func() { cat.Put(document("a", good)) }, catalog.Ours, ""},
		{"it breaks", func() { cat.Put(document("a", trustRootText("ours", `, "logs": []`))) }, catalog.Broken, "spec.sigstoreKeys.logs"},
		{"it is mended", func() { cat.Put(document("a", good)) }, catalog.Ours, ""},
		{"it goes", func() { cat.Remove("a") }, "", "there is no TrustRoot"},
		{"one without a name is not trusted", func() { cat.Put(document("a", trustRootText("", ""))) }, catalog.Broken, "there is no TrustRoot"},
	} {
		step.do()
		_, err := roots.TrustedRoot("ours")
		if (err == nil) != (step.fails == "") || !strings.Contains(fmt.Sprint(err), step.fails) && err != nil {
			t.Errorf("%s: %v, want %q", step.reason, err, step.fails)
		}
		entries := cat.Snapshot().Entries
		if len(entries) > 0 != (step.state != "") || len(entries) > 0 && entries[0].State != step.state {
			t.Errorf("%s: %+v", step.reason, entries)
		}
		if step.state == catalog.Broken && cat.Check([]byte(good)) != nil {
			t.Errorf("%s: a good one is refused", step.reason)
		}
	}
	if snapshot := cat.Put(document("p", strings.ReplaceAll(exempting, "PolicyException", "Other"))); snapshot.Entries[len(snapshot.Entries)-1].State != catalog.NotOurs {
		t.Errorf("a document of another kind: %+v", snapshot.Entries)
	}
	if _, err := roots.TrustedRoot(""); err == nil || !strings.Contains(err.Error(), "there is no TrustRoot") {
		t.Errorf("a document of another kind is a TrustRoot without a name: %v", err)
	}
	cat.Remove("p")
	cat.Put(document("b", good))
	first := trusted()
	if snapshot := cat.Put(document("c", other)); snapshot.Entries[2].State != catalog.Broken || trusted() != first {
		t.Errorf("the second of two counts: %s", snapshot.Entries[2].Why)
	}
	cat.Remove("b")
	if now := trusted(); now == first || now == "" {
		t.Error("the second does not count when the first is gone")
	}
}

// TestTrustRootsWithoutConsumer: if no consumer is set, they are not documents of the catalog.
func TestTrustRootsWithoutConsumer(t *testing.T) {
	cat, _ := newCatalog(t, nil)
	if snapshot := cat.Put(document("a", trustRootText("ours", ""))); snapshot.Entries[0].State != catalog.NotOurs {
		t.Errorf("%+v", snapshot.Entries)
	}
}

// TestExceptionsOfTwoDialects: two that have one name are two, as in a cluster, where the
// kinds are of two groups.
func TestExceptionsOfTwoDialects(t *testing.T) {
	compiler := imagevalidating.New(imagevalidating.Options{})
	cat, _ := newCatalog(t, func(o *catalog.Options) {
		o.Exceptions = append(o.Exceptions, imagevalidating.Exceptions{Compiler: compiler})
	})
	text := `{"apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "legacy", "namespace": "exceptions"},
"spec": {"policyRefs": [{"kind": "ImageValidatingPolicy", "name": "signed"}]}}`
	for _, c := range []struct {
		reason, second string
		active         int
		state          catalog.State
	}{
		{"of another dialect", text, 2, catalog.Ours},
		{"of the same", exempting + "# again", 1, catalog.Broken},
	} {
		snapshot := cat.Put(document("a", exempting), document("b", c.second))
		if n := len(snapshot.Set.Exceptions()); n != c.active || snapshot.Entries[1].State != c.state {
			t.Errorf("%s: %d active, %+v", c.reason, n, snapshot.Entries)
		}
	}
}

// TestOverrides: they apply even if the selector does not match, and a broken one as far as
// it can be read.
func TestOverrides(t *testing.T) {
	cat, _ := newCatalog(t, func(o *catalog.Options) {
		o.Overrides = override.Overrides{}
		o.Selects = func(map[string]string) bool { return false }
	})
	text := fmt.Sprintf(`{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "metadata": {"name": "bad-day"}, "spec": {"effect": "Deny",
"reason": "a bad day", "expires": %q, "match": {"repositories": ["registry.example/app"]}}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for _, c := range []struct {
		reason, before, after string
		state                 catalog.State
		active                int
	}{
		{"an override", "", "", catalog.Ours, 1},
		{"one that is broken and denies", `"reason"`, `"why"`, catalog.Broken, 1},
		{"one that is broken and allows", `"Deny"`, `"Allow", "why": ""`, catalog.Broken, 0},
		{"another kind of ours", "ImageOverride", "RegistryMirror", catalog.NotOurs, 0},
	} {
		snapshot := cat.Put(document("k", strings.Replace(text, c.before, c.after, 1)))
		if entry := snapshot.Entries[0]; entry.State != c.state || len(snapshot.Set.Overrides()) != c.active {
			t.Errorf("%s: %s, %q, %d active", c.reason, entry.State, entry.Why, len(snapshot.Set.Overrides()))
		}
	}
}

// TestOverridesOfOneName: one that has expired does not hide a Deny; an Allow that comes later
// is not in force.
func TestOverridesOfOneName(t *testing.T) {
	written := func(effect, repository string, end time.Time) string {
		return fmt.Sprintf(`{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "metadata": {"name": "bad-day"}, "spec": {"effect": %q,
"reason": "a bad day", "expires": %q, "match": {"repositories": [%q]}}}`, effect, end.UTC().Format(time.RFC3339), repository)
	}
	now := time.Now()
	expired, deny := written("Deny", "registry.example/app", now.Add(-time.Hour)), written("Deny", "registry.example/app", now.Add(time.Hour))
	for _, c := range []struct {
		reason        string
		first, second string
		denies        bool
		active        int
	}{
		{"a Deny behind one that has expired", expired, deny, true, 3},
		{"the other way round", deny, expired, true, 3},
		{"a Deny behind an Allow", written("Allow", "registry.example/app", now.Add(time.Hour)), deny, true, 3},
		{"an Allow behind a Deny of another image", written("Deny", "registry.example/x", now.Add(time.Hour)), written("Allow", "registry.example/app", now.Add(time.Hour)), false, 1},
		{"the same text", deny, deny, true, 3},
		{"both have expired", expired, expired, false, 3},
	} {
		cat, _ := newCatalog(t, func(o *catalog.Options) { o.Overrides = override.Overrides{} })
		snapshot := cat.Put(document("k", c.first), document("l", c.second), document("m", c.second))
		if len(snapshot.Set.Overrides()) != c.active || snapshot.Entries[1].State != catalog.Broken || !strings.Contains(snapshot.Entries[1].Why, "defined twice") {
			t.Errorf("%s: %d active, %+v", c.reason, len(snapshot.Set.Overrides()), snapshot.Entries)
		}
		about := set.Overridden{Names: []image.Ref{image.MustParse("registry.example/app:v1")}}
		said := snapshot.Set.Overriding(&policy.Subject{Kind: "Pod", Namespace: "shop", Time: now})
		if denied := said != nil && said.Says(policy.OverrideDeny, about) != nil; denied != c.denies {
			t.Errorf("%s: denied is %t", c.reason, denied)
		}
	}
}

// TestPoliciesThatFollow: what follows from the policies stands beside them, and is
// made anew when they change.
func TestPoliciesThatFollow(t *testing.T) {
	failing, nameless := errors.New("it does not follow"), "-"
	cat, _ := newCatalog(t, func(o *catalog.Options) {
		o.Beside = func(active []*policy.Policy) ([]*policy.Policy, error) {
			switch len(active) {
			case 0:
				return nil, nil
			case 1:
				return []*policy.Policy{{Kind: "Beside", Name: strings.TrimPrefix(active[0].Name, nameless)}}, nil
			}
			return nil, failing
		}
	})
	if snapshot := cat.Put(); len(snapshot.Set.Policies()) != 0 {
		t.Errorf("something follows from nothing: %v", snapshot.Set.Policies())
	}
	one := cat.Put(document("a", good))
	if list := one.Set.Policies(); len(list) != 2 || list[0].ID() != "Beside/good" || len(one.Entries) != 1 {
		t.Errorf("%v, %v", list, one.Entries)
	}
	nameless = "good"
	if snapshot := cat.Publish(); snapshot.Set != one.Set || snapshot.Entries[len(snapshot.Entries)-1].State != catalog.Broken {
		t.Errorf("what follows and has no name became active: %v", snapshot.Entries)
	}
	nameless = "-"
	two := cat.Put(document("b", strings.Replace(good, "name: good", "name: other", 1)))
	if two.Set != one.Set || !errors.Is(two.Entries[len(two.Entries)-1].Err, failing) {
		t.Errorf("what cannot be joined became active: %v", two.Entries)
	}
}

// TestInForce: the effective policy is the active one, and the entry has the policy of the
// document.
func TestInForce(t *testing.T) {
	earlier := &policy.Policy{Kind: "ClusterPolicy", Name: "good", Hash: "earlier"}
	for _, c := range []struct {
		reason string
		of     func(key string, text []byte, p *policy.Policy) *policy.Policy
		same   bool
	}{
		{"nothing is asked", nil, true},
		{"itself", func(_ string, _ []byte, p *policy.Policy) *policy.Policy { return p }, true},
		{"one from before", func(key string, text []byte, p *policy.Policy) *policy.Policy {
			if key != "a" || string(text) != good {
				return p
			}
			return earlier
		}, false},
	} {
		cat, _ := newCatalog(t, func(o *catalog.Options) { o.Effective = c.of })
		snapshot := cat.Put(document("a", good))
		active, said := snapshot.Set.Policies(), snapshot.Entries[0].Policy
		if len(active) != 1 || active[0] == nil || (active[0] == said) != c.same || said == earlier {
			t.Errorf("%s: %+v active, and the entry has %+v", c.reason, active, said)
		}
	}
}

// made is a dialect, and one of exceptions, that compiles every document to the same result.
type made struct {
	policy    *policy.Policy
	exception *policy.Exception
}

func (made) Recognises(apiVersion, _ string) bool { return apiVersion == "example.com/v1" }

func (m made) Compile([]byte, string) (*policy.Policy, error) { return m.policy, nil }

func (made) Broken([]byte, string, error) *policy.Policy { return nil }

type madeExceptions struct{ made }

func (m madeExceptions) Compile([]byte, string) (*policy.Exception, error) { return m.exception, nil }

// TestEmptyPoliciesAndExceptions: a policy without rules is left to others, and an exception that
// names nothing changes nothing.
func TestEmptyPoliciesAndExceptions(t *testing.T) {
	const text = `{"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"namespace": "exceptions"}}`
	for _, c := range []struct {
		reason             string
		made               made
		asException        bool
		state, last        catalog.State // of the first entry and of the last
		active, exceptions int
	}{
		{"a policy", made{policy: &policy.Policy{Kind: "K", Name: "n", Rules: make([]policy.Rule, 1)}}, false, catalog.Ours, catalog.Ours, 1, 0},
		{"a policy without rules", made{policy: &policy.Policy{Kind: "K", Name: "n"}}, false, catalog.NotOurs, catalog.NotOurs, 0, 0},
		{"an exception", made{exception: &policy.Exception{Name: "n", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"*"}}}}}, true, catalog.Ours, catalog.Ours, 0, 1},
		{"an exception from nothing", made{exception: &policy.Exception{Name: "n"}}, true, catalog.Ours, catalog.Broken, 0, 0},
	} {
		cat, _ := newCatalog(t, func(o *catalog.Options) {
			o.Dialects = []catalog.Dialect{c.made}
			if c.asException {
				o.Dialects = []catalog.Dialect{unknown{}}
			}
			o.Exceptions = []catalog.Exceptions{madeExceptions{c.made}}
		})
		snapshot := cat.Put(document("k", text))
		entries, set := snapshot.Entries, snapshot.Set
		if entries[0].State != c.state || entries[len(entries)-1].State != c.last || len(set.Policies()) != c.active || len(set.Exceptions()) != c.exceptions {
			t.Errorf("%s: %+v, %d policies and %d exceptions active", c.reason, entries, len(set.Policies()), len(set.Exceptions()))
		}
	}
}

// TestUnserved: a policy that names a resource that is not served is active and reports it; Check
// refuses it if the resource can never be served.
func TestUnserved(t *testing.T) {
	const text = `{"apiVersion": "example.com/v1", "kind": "Any"}`
	coming := policy.Unserved{Err: errors.New("tasks are not there"), MayCome: true}
	misspelt := policy.Unserved{Err: errors.New("podz are not there")}
	for _, c := range []struct {
		reason          string
		unserved        []policy.Unserved
		why, notWritten string
	}{
		{"all is there", nil, "", ""},
		{"something may come", []policy.Unserved{coming}, "until that is there: tasks are not there", ""},
		{"something cannot", []policy.Unserved{coming, misspelt}, "until that is there: tasks are not there; podz are not there", "K n: podz are not there"},
	} {
		made := made{policy: &policy.Policy{Kind: "K", Name: "n", Source: "s", Rules: make([]policy.Rule, 1), Problems: policy.Problems{Unserved: c.unserved}}}
		cat, _ := newCatalog(t, func(o *catalog.Options) { o.Dialects = []catalog.Dialect{made} })
		entry := cat.Put(document("k", text)).Entries[0]
		if entry.State != catalog.Ours || entry.Err != nil || !strings.HasSuffix(entry.Why, c.why) || (entry.Why == "") != (c.why == "") {
			t.Errorf("%s: %+v", c.reason, entry)
		}
		err := cat.Check([]byte(text))
		if (err == nil) != (c.notWritten == "") || err != nil && err.Error() != "policy in s: "+c.notWritten {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// unknown is a dialect of no document.
type unknown struct{ made }

func (unknown) Recognises(string, string) bool { return false }

// TestAgain: documents of a kind are compiled again, with the current dependencies.
func TestAgain(t *testing.T) {
	cat, compiled := newCatalog(t, nil)
	cat.Put(document("a", good), document("b", exempting))
	for _, c := range []struct {
		reason, kind string
		compiled     int
	}{{"the kind", "ClusterPolicy", 2}, {"another kind", "Policy", 2}} {
		snapshot := cat.Again(func(_, kind string) bool { return kind == c.kind })
		if *compiled != c.compiled || len(snapshot.Set.Policies()) != 1 || len(snapshot.Set.Exceptions()) != 1 {
			t.Errorf("%s: compiled %d times, %d policies", c.reason, *compiled, len(snapshot.Set.Policies()))
		}
	}
}

package scan_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan"
)

// TestRound: what runs is judged as if it came now, whatever let it in.
func TestRound(t *testing.T) {
	w := newWorld(t, signedPolicy, labelPolicy("maps", "ConfigMap", ""))
	signed := testkit.Must(w.env.Signed("app"))(t)
	unsigned := w.env.Build("shop/evil", "1", "evil")
	static := strings.Replace(pod("kube-system", "static", unsigned.Name), `"metadata":{`, `"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},`, 1)
	w.add(t, pods, pod("shop", "good", signed.Name), pod("shop", "bad", unsigned.Name), static, pod("skipped", "bad", unsigned.Name))
	w.add(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"plain"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"labelled","labels":{"team":"a"}}}`)
	w.add(t, deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"not-matched"}}`)
	w.options.Excluded = []string{"skip*"}
	summary := w.round(t)
	want := map[string]gate.Result{
		"Pod shop/good": gate.Allow, "Pod shop/bad": gate.Deny, "Pod kube-system/static": gate.Deny,
		"ConfigMap shop/plain": gate.Deny, "ConfigMap shop/labelled": gate.Allow,
		"Deployment shop/not-matched": gate.Unchecked, // its template would be asked about
	}
	if got := w.answers(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if summary.Objects != 6 || summary.Denied != 3 || summary.Excluded != 1 || summary.Errors != 0 || !summary.Complete() {
		t.Errorf("%+v", summary)
	}
	for _, d := range w.decided {
		if d.Occasion.Process != report.ProcessScan || d.Occasion.User != "" || !d.Occasion.Allowed {
			t.Errorf("%+v", d.Occasion)
		}
	}
}

// TestUnpinnedTagsAreNoDenial: a tag that would be pinned at admission is no reason to deny an
// object that is older than the gateway.
func TestUnpinnedTagsAreNoDenial(t *testing.T) {
	w := newWorld(t, strings.Replace(signedPolicy, "verifyImages:\n    - ", "verifyImages:\n    - mutateDigest: true\n      verifyDigest: true\n      ", 1))
	signed := testkit.Must(w.env.Signed("app"))(t)
	w.add(t, pods, pod("shop", "tagged", signed.Name), pod("shop", "pinned", signed.ByDigest()))
	if summary := w.round(t); summary.Denied != 0 || summary.Matched != 2 {
		t.Errorf("%+v", summary)
	}
}

// TestMutationsAreReported: on request a round has the results of mutation rules, of policies with no
// other rule as well, and not of those that are not for scans.
func TestMutationsAreReported(t *testing.T) {
	mutating := func(name, settings string) string {
		return `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: ` + name + `}, spec: {` + settings + `rules: [
  {name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {team: a}}}}}]}}`
	}
	for _, row := range []struct {
		reason    string
		mutations bool
		settings  string
		want      []string
	}{
		{"on request", true, "", []string{"new pass", "old pass"}},
		{"not requested", false, "", nil},
		{"a policy that is not for scans", true, "background: false, ", nil},
	} {
		w := newWorld(t, mutating("labels", row.settings))
		w.add(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"new","labels":{"team":"a"}}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"old"}}`)
		reports := &keeper{}
		w.options.Mutations, w.options.Keeper = row.mutations, reports
		if summary := w.round(t); summary.Denied+summary.Errors != 0 {
			t.Errorf("%s: %+v", row.reason, summary)
		}
		var got []string
		for _, d := range reports.decided {
			for _, r := range result.Of(d) {
				got = append(got, r.Resource.Name+" "+string(r.Status))
			}
		}
		if !slices.Equal(got, row.want) || len(w.decided) != len(row.want) {
			t.Errorf("%s: %q, want %q; %d decisions", row.reason, got, row.want, len(w.decided))
		}
		for _, d := range w.decided {
			if len(d.Outcome.Rules) > 0 || d.Outcome.Result != gate.Unchecked {
				t.Errorf("%s: a sink for decisions has %s, %+v", row.reason, d.Outcome.Result, d.Outcome.Rules)
			}
		}
		if left := testkit.Must(w.options.State.LeftOut(t.Context()))(t); len(left) != 0 {
			t.Errorf("%s: left out %+v", row.reason, left)
		}
	}
}

// keeper keeps what is for reports.
type keeper struct{ kept }

func (k *keeper) Put(_ context.Context, d report.Decided) error {
	k.Take(d)
	return nil
}

// TestUnscanned: policies that are not for scans say nothing in one, and those for scans
// alone do.
func TestUnscanned(t *testing.T) {
	w := newWorld(t, labelPolicy("unwanted", "Pod", "\n  background: false"), labelPolicy("only", "Pod", "\n  admission: false"),
		strings.Replace(labelPolicy("who", "Pod", ""), "pattern: {metadata: {labels: {team: \"?*\"}}}", "deny: {conditions: {any: [{key: '{{request.userInfo.username}}', operator: NotEquals, value: admin}]}}", 1))
	w.add(t, pods, pod("shop", "a", "nginx"))
	summary := w.round(t)
	if summary.Denied != 1 {
		t.Fatalf("%+v", summary)
	}
	var said []string
	for _, r := range w.decided[0].Outcome.Rules {
		said = append(said, r.Policy.Name)
	}
	if !slices.Equal(said, []string{"only"}) {
		t.Errorf("these rules have results: %v", said)
	}
	left := testkit.Must(w.options.State.LeftOut(t.Context()))(t)
	if len(left) != 2 || !strings.Contains(left[0].Why, "background") || !strings.Contains(left[1].Why, "reads the requester") {
		t.Errorf("left out: %+v", left)
	}
}

// TestUnscannedException: an exception that is not for scans leaves nothing out of one.
func TestUnscannedException(t *testing.T) {
	rules := []policy.ExceptedRule{{Policy: "p", Rules: []string{"*"}}}
	whole := testkit.Must(testkit.Must(set.New())(t).With(
		&policy.Exception{Namespace: "n", Name: "scanned", Rules: rules}, &policy.Exception{Namespace: "n", Name: "admitted", Rules: rules, Unscanned: true}))(t)
	set, _, err := scan.Scanned(whole)
	if err != nil {
		t.Fatal(err)
	}
	if list := set.Exceptions(); len(list) != 1 || list[0].Name != "scanned" || len(whole.Exceptions()) != 2 {
		t.Errorf("%v", list)
	}
}

// TestImagesAreProvedOnce: requests grow with images, not with pods or pages.
func TestImagesAreProvedOnce(t *testing.T) {
	w := newWorld(t, signedPolicy)
	w.most = 7
	const images, each = 5, 40
	for i := range images {
		signed := testkit.Must(w.env.Signed(string(rune('a' + i))))(t)
		for n := range each {
			w.add(t, pods, pod("shop", strings.Repeat("p", n+1)+signed.Repository[5:], signed.Name))
		}
	}
	first := w.round(t)
	if first.Objects != images*each || first.Denied+first.Errors != 0 {
		t.Fatalf("%+v", first)
	}
	// Of each image: its tag, the signature's manifest and payload, the referrers, and the referrers
	// tag while it is not known that the host has the API.
	if asked, pulled := len(w.env.Registry.Requests()), w.env.Registry.Pulls(); asked > images*5 || pulled > images*2 {
		t.Errorf("%d requests, %d of them counted, for %d images", asked, pulled, images)
	}
	w.env.Registry.Reset()
	w.round(t)
	if asked := len(w.env.Registry.Requests()); asked != 0 {
		t.Errorf("the second round asked %d times", asked)
	}
}

// TestNamespaces: a rule that selects by the labels of a namespace cannot be evaluated where they
// are unknown, and that is no pass.
func TestNamespaces(t *testing.T) {
	selecting := strings.Replace(labelPolicy("p", "Pod", ""), `kinds: ["Pod"]`, `kinds: ["Pod"], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}`, 1)
	w := newWorld(t, selecting)
	w.add(t, pods, pod("shop", "a", "nginx"), pod("other", "a", "nginx"), pod("unknown", "a", "nginx"))
	w.round(t)
	want := map[string]gate.Result{"Pod shop/a": gate.Deny, "Pod other/a": gate.Unchecked, "Pod unknown/a": gate.Error}
	if got := w.answers(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestKinds: the listed kinds follow from those that policies match.
func TestKinds(t *testing.T) {
	old := deployments
	old.Version = "v1beta1"
	for _, row := range []struct {
		reason string
		policy string
		want   []string
	}{
		{"pods alone", labelPolicy("p", "Pod", ""), []string{"pods/"}},
		{"any kind, but for what clusters write all the time", labelPolicy("p", "*", ""), []string{"pods/", "configmaps/", "namespaces/", "deployments/"}},
		{"events by their name", labelPolicy("p", "Event", ""), []string{"events/"}},
		{"no scan wants it", labelPolicy("p", "Pod", "\n  background: false"), nil},
		{"only what goes", strings.NewReplacer(`kinds: ["Pod"]`, `kinds: ["Pod"], operations: [DELETE]`, `pattern: {metadata: {labels: {team: "?*"}}}`, "deny: {}").Replace(labelPolicy("p", "Pod", "")), nil},
		{"a part of an object is none", labelPolicy("p", "Pod/exec", ""), nil},
	} {
		w := newWorld(t, row.policy)
		for _, kind := range []scan.Kind{configMaps, pods, namespaces, events, deployments, old} {
			w.add(t, kind)
		}
		w.round(t)
		if got := w.pages(); !slices.Equal(got, row.want) {
			t.Errorf("%s: listed %v, want %v", row.reason, got, row.want)
		}
	}
}

// TestLists: what a round makes of lists that do not go well.
func TestLists(t *testing.T) {
	gone := errors.New("too old resource version")
	for _, row := range []struct {
		reason string
		before func() func(scan.Kind, string) error
		pages  []string
		looked int // objects that were handed over
		passed bool
		fails  bool
	}{
		{"nothing is wrong", func() func(scan.Kind, string) error { return nil }, []string{"pods/", "pods/2", "pods/4"}, 5, true, false},
		{"the list is too old and goes on", func() func(scan.Kind, string) error {
			told := false
			return func(_ scan.Kind, from string) error {
				if from == "2" && !told {
					told = true
					return &scan.ExpiredError{Next: "3", Err: gone}
				}
				return nil
			}
		}, []string{"pods/", "pods/2", "pods/3"}, 4, true, false},
		{"the list is too old and begins anew", func() func(scan.Kind, string) error {
			told := false
			return func(_ scan.Kind, from string) error {
				if from == "4" && !told {
					told = true
					return &scan.ExpiredError{Err: gone}
				}
				return nil
			}
		}, []string{"pods/", "pods/2", "pods/4", "pods/", "pods/2", "pods/4"}, 9, true, false},
		{"it always is too old", func() func(scan.Kind, string) error {
			return func(_ scan.Kind, from string) error {
				if from == "2" {
					return &scan.ExpiredError{Err: gone}
				}
				return nil
			}
		}, []string{"pods/", "pods/2", "pods/", "pods/2", "pods/", "pods/2", "pods/", "pods/2"}, 8, false, true},
		{"it may not be listed", func() func(scan.Kind, string) error {
			return func(scan.Kind, string) error { return scan.ErrRefused }
		}, []string{"pods/"}, 0, false, false},
	} {
		w := newWorld(t, labelPolicy("p", "Pod", ""))
		w.most, w.before = 2, row.before()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.add(t, pods, pod("shop", name, "nginx"))
		}
		summary, err := w.scanner(t).Round(t.Context())
		if (err != nil) != row.fails {
			t.Errorf("%s: %v", row.reason, err)
		}
		if got := w.pages(); !slices.Equal(got, row.pages) {
			t.Errorf("%s: listed %v, want %v", row.reason, got, row.pages)
		}
		if w.count() != row.looked || (len(w.passed) == 1) != row.passed {
			t.Errorf("%s: %d objects, passed %v", row.reason, w.count(), w.passed)
		}
		if row.passed && (!w.passed[0].Has("uid-shop-e") || w.passed[0].Has("uid-shop-x")) {
			t.Errorf("%s: the pass lacks existing objects", row.reason)
		}
		if refused := row.looked == 0; refused != (len(summary.Refused) == 1) || refused == summary.Complete() {
			t.Errorf("%s: %+v", row.reason, summary)
		}
	}
}

// TestBusy: a page waits for admission, and not forever.
func TestBusy(t *testing.T) {
	w := newWorld(t, labelPolicy("p", "Pod", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	asked := 0
	w.options.Busy = func() bool { asked++; return asked < 3 }
	began := time.Now()
	w.round(t)
	if asked != 3 || w.count() != 1 || time.Since(began) < 150*time.Millisecond {
		t.Errorf("asked %d times, %d objects after %s", asked, w.count(), time.Since(began))
	}
}

// TestOptionsAreRequired: a Scanner without one of its parts is refused.
func TestOptionsAreRequired(t *testing.T) {
	for _, drop := range []func(*scan.Options){
		func(o *scan.Options) { o.Cluster = nil }, func(o *scan.Options) { o.Decider = nil }, func(o *scan.Options) { o.State = nil },
		func(o *scan.Options) { o.Namespaces = nil }, func(o *scan.Options) { o.Observer = nil },
	} {
		o := newWorld(t).options
		drop(&o)
		if _, err := scan.New(o); err == nil {
			t.Errorf("accepted: %+v", o)
		}
	}
}

// unselective is a rule about images that names no kinds, as one of flags.
type unselective struct{ policy.Rule }

// TestAPolicyWithoutKindsMatchesPods: with nothing listed, nothing would be held
// against anything.
func TestAPolicyWithoutKindsMatchesPods(t *testing.T) {
	w := newWorld(t)
	of := testkit.Must(w.env.Policy(signedPolicy))(t)
	of.Targets = nil
	for i, r := range of.Rules {
		of.Rules[i] = unselective{r}
	}
	w.state.Replace(gate.Snapshot{Policies: testkit.Must(set.New(of))(t), Prover: w.env.Prover})
	good, bad := testkit.Must(w.env.Signed("good"))(t), w.env.Build("bad", "v1", "bad")
	w.add(t, pods, pod("shop", "good", good.Name), pod("shop", "bad", bad.Name))
	w.add(t, configMaps)
	summary := w.round(t)
	if summary.Objects != 2 || summary.Denied != 1 || w.answers()["Pod shop/bad"] != gate.Deny {
		t.Errorf("%+v: %v", summary, w.answers())
	}
	if got := w.pages(); !slices.Equal(got, []string{"pods/"}) {
		t.Errorf("listed %v", got)
	}
}

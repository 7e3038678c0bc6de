package inventory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/verify"
)

// fourImages is an inventory of four images.
func fourImages(t testing.TB) *inventory.Inventory {
	t.Helper()
	known, _ := newInventory(t)
	keyless := proved("r.example/api:1", "")
	keyless.Decisions[0].Proofs[0].Signer = verify.Signer{Subject: "https://github.com/Acme/api", Issuer: "https://issuer.example"}
	keyless.Decisions[0].Policy.Name = "keyless"
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/web:1", keyA)), podOf("shop", "web", 1))
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/web:1", keyA)), podOf("shop", "web", 2))
	known.Add(admitted(begin.Add(time.Second)), record(gate.Allow, keyless), podOf("shop", "api", 1))
	known.Add(scanned(begin.Add(2*time.Second)), record(gate.Allow, report.Image{Reference: "docker.io/library/redis:7", Digest: digest("redis"), Result: gate.Allow}), podOf("data", "redis", 1))
	known.Add(refused(begin.Add(3*time.Second)), record(gate.Deny, unsigned("r.example/cart:1")), podOf("staging", "cart", 1))
	return known
}

func TestImageQueries(t *testing.T) {
	known := fourImages(t)
	for _, row := range []struct {
		reason string
		query  inventory.ImageQuery
		want   []string // the last parts of references, in order
	}{
		{"all, those that need attention first", inventory.ImageQuery{}, []string{"cart:1", "redis:7", "api:1", "web:1"}},
		{"in the order of names", inventory.ImageQuery{Sort: inventory.ByReference}, []string{"redis:7", "api:1", "cart:1", "web:1"}},
		{"the other way round", inventory.ImageQuery{Sort: inventory.ByReference, Reverse: true}, []string{"web:1", "cart:1", "api:1", "redis:7"}},
		{"the most pods first", inventory.ImageQuery{Sort: inventory.ByPods, Namespace: "shop"}, []string{"web:1", "api:1"}},
		{"seen last first", inventory.ImageQuery{Sort: inventory.ByLastSeen}, []string{"cart:1", "redis:7", "api:1", "web:1"}},
		{"by signer, the unsigned last", inventory.ImageQuery{Sort: inventory.BySigner}, []string{"api:1", "web:1", "redis:7", "cart:1"}},
		{"text of a name, in any case", inventory.ImageQuery{Text: "WEB"}, []string{"web:1"}},
		{"text of a workload", inventory.ImageQuery{Text: "data/redis"}, []string{"redis:7"}},
		{"a verdict", inventory.ImageQuery{Verdict: inventory.Denied}, []string{"cart:1"}},
		{"a verdict that none has", inventory.ImageQuery{Verdict: inventory.Errored}, nil},
		{"a namespace, in which it was refused", inventory.ImageQuery{Namespace: "staging"}, []string{"cart:1"}},
		{"a part of a namespace", inventory.ImageQuery{Namespace: "stag"}, nil},
		{"an identity", inventory.ImageQuery{Signer: "github.com/acme"}, []string{"api:1"}},
		{"an issuer", inventory.ImageQuery{Signer: "issuer.example"}, []string{"api:1"}},
		{"a key", inventory.ImageQuery{Key: keyA[:12]}, []string{"web:1"}},
		{"the middle of a key", inventory.ImageQuery{Key: keyA[4:12]}, nil},
		{"another key", inventory.ImageQuery{Key: keyB}, nil},
		{"a policy", inventory.ImageQuery{Policy: "ClusterPolicy/signed"}, []string{"cart:1", "web:1"}},
		{"what fails a policy", inventory.ImageQuery{Policy: "ClusterPolicy/signed", Failed: true}, []string{"cart:1"}},
		{"a policy without its kind", inventory.ImageQuery{Policy: "signed"}, nil},
		{"a digest", inventory.ImageQuery{Digest: digest("redis").String()}, []string{"redis:7"}},
		{"the beginning of a digest", inventory.ImageQuery{Digest: digest("redis").Hex()[:9]}, []string{"redis:7"}},
		{"a page", inventory.ImageQuery{Page: inventory.Page{Offset: 1, Limit: 2}}, []string{"redis:7", "api:1"}},
		{"past the end", inventory.ImageQuery{Page: inventory.Page{Offset: 9, Limit: 2}}, nil},
	} {
		var got []string
		for _, each := range images(t, known, row.query) {
			got = append(got, each.Reference[strings.LastIndexByte(each.Reference, '/')+1:])
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.reason, got, row.want)
		}
	}
	page, err := known.Images(inventory.ImageQuery{Verdict: inventory.Denied})
	if err != nil || page.Total != 1 || page.Verdicts != (inventory.Tally{Denied: 1, Unchecked: 1, Allowed: 2}) {
		t.Errorf("the verdicts to choose from: %+v, %v", page, err)
	}
}

func TestQueriesThatMakeNoSense(t *testing.T) {
	known := fourImages(t)
	for _, row := range []struct {
		reason string
		query  inventory.ImageQuery
	}{
		{"no such verdict", inventory.ImageQuery{Verdict: "fine"}},
		{"no such order", inventory.ImageQuery{Sort: "colour"}},
		{"before the beginning", inventory.ImageQuery{Page: inventory.Page{Offset: -1}}},
		{"less than nothing", inventory.ImageQuery{Page: inventory.Page{Limit: -1}}},
		{"too much at once", inventory.ImageQuery{Page: inventory.Page{Limit: inventory.MaxPage + 1}}},
	} {
		if _, err := known.Images(row.query); err == nil {
			t.Errorf("%s was answered", row.reason)
		}
	}
	if _, err := known.Decisions(inventory.DecisionQuery{Verdict: "fine"}); err == nil {
		t.Error("decisions of no such verdict")
	}
	if _, err := known.Overview("1y"); err == nil {
		t.Error("a span that is not kept")
	}
}

func TestDecisions(t *testing.T) {
	known := fourImages(t)
	o := refused(begin.Add(time.Minute))
	o.Undecided, o.UID, o.User = "queue-full", "the-uid", "somebody"
	known.Add(o, report.Record{}, report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "late"})
	for _, row := range []struct {
		reason string
		query  inventory.DecisionQuery
		want   []string // names of objects, the latest first
	}{
		{"all, without results of a scan", inventory.DecisionQuery{}, []string{"late", "cart-1", "api-1", "web-2", "web-1"}},
		{"undecided requests", inventory.DecisionQuery{Verdict: inventory.Errored}, []string{"late"}},
		{"a namespace", inventory.DecisionQuery{Namespace: "staging"}, []string{"cart-1"}},
		{"an image", inventory.DecisionQuery{Text: "r.example/API"}, []string{"api-1"}},
		{"a reason", inventory.DecisionQuery{Text: "no signature"}, []string{"cart-1"}},
		{"the user", inventory.DecisionQuery{Text: "somebody"}, []string{"late"}},
		{"a request", inventory.DecisionQuery{Text: "the-uid"}, []string{"late"}},
		{"the beginning of a request's UID", inventory.DecisionQuery{Text: "the-u"}, nil},
		{"a page", inventory.DecisionQuery{Page: inventory.Page{Offset: 1, Limit: 1}}, []string{"cart-1"}},
	} {
		page, err := known.Decisions(row.query)
		var got []string
		for _, d := range page.Items {
			got = append(got, d.Resource.Name)
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, %v, want %v", row.reason, got, err, row.want)
		}
	}
}

func TestOverview(t *testing.T) {
	known := fourImages(t)
	for _, row := range []struct {
		span  inventory.Span
		n     int
		grain time.Duration
	}{{inventory.Hour, 60, time.Minute}, {inventory.Day, 96, 15 * time.Minute}, {inventory.Week, 84, 2 * time.Hour}} {
		got, err := known.Overview(row.span)
		if err != nil || len(got.Moments) != row.n || got.GrainSeconds != int(row.grain.Seconds()) {
			t.Fatalf("%s: %d moments of %d s, %v", row.span, len(got.Moments), got.GrainSeconds, err)
		}
		now := got.Moments[row.n-1]
		if now.Allowed != 3 || now.Denied != 1 {
			t.Errorf("%s: now %+v", row.span, now)
		}
		for k := 1; k < row.n; k++ {
			if got.Moments[k].Start.Sub(got.Moments[k-1].Start) != row.grain {
				t.Fatalf("%s: a hole after %s", row.span, got.Moments[k-1].Start)
			}
		}
	}
	got, err := known.Overview("")
	if err != nil || got.Images != (inventory.Tally{Denied: 1, Unchecked: 1, Allowed: 2}) || len(got.Attention) != 1 || len(got.Failing) != 1 || got.Failing[0].Name != "signed" || len(got.Latest) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPolicies(t *testing.T) {
	known := fourImages(t)
	known.Add(admitted(begin), report.Record{Result: gate.Allow, Rules: []report.Rule{
		{Policy: report.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: "a", Kind: policy.ValidateRule, Result: policy.Pass},
		{Policy: report.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: "b", Kind: policy.ValidateRule, Result: policy.Fail, Action: policy.Warn},
		{Policy: report.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: "c", Kind: policy.ValidateRule, Skipped: "preconditions"},
		{Policy: report.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: "d", Error: "no such variable"},
	}}, podOf("shop", "x", 1))
	got := map[string]inventory.Policy{}
	for _, p := range known.Policies() {
		got[p.Name] = p
	}
	if p := got["signed"]; p.Images != (inventory.Results{Pass: 1, Fail: 1}) || p.Admission != (inventory.Results{Pass: 2, Fail: 1}) || p.LastFail.IsZero() {
		t.Errorf("%+v", p)
	}
	if p := got["labels"]; p.Images != (inventory.Results{}) || p.Admission != (inventory.Results{Pass: 1, Warn: 1, Error: 1}) || len(p.Rules) != 3 {
		t.Errorf("%+v", p)
	}
	facets := known.Facets()
	if !slices.Equal(facets.Namespaces, []string{"data", "shop", "staging"}) || len(facets.Signers) != 2 || len(facets.Policies) != 3 {
		t.Errorf("%+v", facets)
	}
}

// TestBounds: made-up names of a client fill no memory.
func TestBounds(t *testing.T) {
	known, c := newInventory(t)
	long := strings.Repeat("ä", 40_000)
	hostile := unsigned("r.example/" + long + ":1")
	hostile.Reasons[0].Message = long
	hostile.Decisions[0].Proofs = []report.Proof{{Signer: verify.Signer{Subject: long, Extensions: map[string]string{}}}}
	for n := range 100 {
		hostile.Decisions[0].Proofs[0].Signer.Extensions[fmt.Sprint(n)] = long
	}
	about := podOf("n", "o", 1)
	about.Name, about.Namespace = long, long
	known.Add(refused(begin), record(gate.Deny, hostile), about)
	one := images(t, known, inventory.ImageQuery{})[0]
	details, _ := known.Image(one.ID)
	if len(one.Reference) > 1<<10 || len(one.Message) > 1<<10 || len(one.Signers[0].Subject) > 1<<10 || len(details.Uses[0].Namespace) > 1<<10 || len(details.Record) > 256<<10 {
		t.Errorf("%d, %d, %d, %d and %d bytes are kept", len(one.Reference), len(one.Message), len(one.Signers[0].Subject), len(details.Uses[0].Namespace), len(details.Record))
	}
	for n := range inventory.MaxImages + 100 {
		known.Add(refused(begin), record(gate.Deny, unsigned(fmt.Sprintf("r.example/made-up-%d:1", n))), podOf("n", "o", n))
	}
	page, err := known.Images(inventory.ImageQuery{})
	if err != nil || page.Total != inventory.MaxImages {
		t.Errorf("%d images, %v", page.Total, err)
	}
	if got := images(t, known, inventory.ImageQuery{Text: "ääää"}); len(got) != 0 {
		t.Error("the one that was seen longest ago is kept")
	}
	if page, err := known.Decisions(inventory.DecisionQuery{}); err != nil || page.Total != inventory.MaxDecisions {
		t.Errorf("%d decisions, %v", page.Total, err)
	}
	c.now = begin.Add(inventory.Keep + 2*time.Hour)
	known.Add(admitted(c.now), record(gate.Allow, proved("r.example/new:1", keyA)), podOf("n", "new", 1))
	known.Add(admitted(begin), record(gate.Allow, proved("r.example/old:1", keyA)), podOf("n", "old", 1)) // from a log
	if page, err := known.Images(inventory.ImageQuery{}); err != nil || page.Total != 1 {
		t.Errorf("after a week: %d images, %v", page.Total, err)
	}
}

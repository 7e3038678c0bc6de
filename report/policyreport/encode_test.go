package policyreport_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// many returns results about so many pods.
func many(n int) []result.Result {
	var all []result.Result
	for i := range n {
		all = append(all, result.Result{
			Policy: result.Policy{Kind: "ClusterPolicy", Name: "require-labels", Hash: "abc"}, Rule: "team", Status: result.Fail, Code: policy.Violated,
			Message: "the label team is required", Time: morning, Resource: named("v1", "Pod", "shop", fmt.Sprintf("web-%04d", i)).resource(),
		})
	}
	return all
}

// TestParts: a report is split at the number of results and at the size that are set.
func TestParts(t *testing.T) {
	for _, row := range []struct {
		reason  string
		results int
		limits  policyreport.Limits
		parts   int
	}{
		{"nothing", 0, policyreport.Limits{}, 0},
		{"the default", 1000, policyreport.Limits{}, 1},
		{"one more than that", 1001, policyreport.Limits{}, 2},
		{"a number of results", 25, policyreport.Limits{Results: 10}, 3},
		{"the last part is full", 30, policyreport.Limits{Results: 10}, 3},
		{"a size", 500, policyreport.Limits{Bytes: 64 << 10}, 3},
		{"more room", 500, policyreport.Limits{Bytes: 256 << 10}, 1},
	} {
		at := policyreport.Place{Namespace: "shop", Name: "all"}
		for _, api := range policyreport.APIs() {
			r := policyreport.New(at, policyreport.Selection{})
			r.Merge(many(row.results))
			parts, err := r.Encode(api, row.limits)
			if err != nil || len(parts) != row.parts {
				t.Fatalf("%s: %d parts, %v, want %d", row.reason, len(parts), err, row.parts)
			}
			total := 0
			for i, part := range parts {
				one := readOne(t, part.JSON)
				total += len(one.Results)
				if one.Summary["fail"] != len(one.Results) || len(one.Summary) != 5 {
					t.Errorf("%s: the summary of %d results is %v", row.reason, len(one.Results), one.Summary)
				}
				if want := policyreport.PartName("all", i+1); part.Name != want || one.Metadata.Name != want || part.Action != policyreport.Create {
					t.Errorf("%s: %s %s, want to create %s", row.reason, part.Action, one.Metadata.Name, want)
				}
				of, later := one.Metadata.Annotations[policyreport.PartOfAnnotation]
				if later != (i > 0) || later && of != at.Name {
					t.Errorf("%s: %s is annotated as a part of %q", row.reason, one.Metadata.Name, of)
				}
				if most := max(row.limits.Bytes, policyreport.DefaultBytes); row.limits.Bytes > 0 && len(part.JSON) > row.limits.Bytes || len(part.JSON) > most {
					t.Errorf("%s: a part of %d bytes", row.reason, len(part.JSON))
				}
			}
			if total != row.results {
				t.Errorf("%s: %d results of %d", row.reason, total, row.results)
			}
		}
	}
}

// TestCountedParts: counted results take room, too.
func TestCountedParts(t *testing.T) {
	results := many(20_000)
	for i := range results {
		results[i].Status, results[i].Code, results[i].Message = result.Pass, "", ""
	}
	at, show := policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Selection{CountPasses: true}
	r := policyreport.New(at, show)
	r.Merge(results)
	parts, err := r.Encode(policyreport.OpenReports, policyreport.Limits{Bytes: 64 << 10})
	if err != nil || len(parts) < 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	passes := 0
	for _, part := range parts {
		if len(part.JSON) > 64<<10 {
			t.Errorf("a part of %d bytes", len(part.JSON))
		}
		passes += readOne(t, part.JSON).Summary["pass"]
	}
	if read := decode(t, at, show, contents(parts)); passes != 20_000 || read.Merge(results[:100]) {
		t.Errorf("%d passes of 20,000; or they are forgotten", passes)
	}
}

func TestLimits(t *testing.T) {
	for _, row := range []struct {
		reason string
		limits policyreport.Limits
		ok     bool
	}{
		{"the default", policyreport.Limits{}, true},
		{"the least", policyreport.Limits{Results: 1, Bytes: policyreport.MinBytes}, true},
		{"the most", policyreport.Limits{Bytes: policyreport.MaxBytes}, true},
		{"fewer than one result", policyreport.Limits{Results: -1}, false},
		{"too small for a result", policyreport.Limits{Bytes: policyreport.MinBytes - 1}, false},
		{"too large for etcd", policyreport.Limits{Bytes: policyreport.MaxBytes + 1}, false},
	} {
		r := policyreport.New(policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Selection{})
		r.Merge(many(1))
		if _, err := r.Encode(policyreport.OpenReports, row.limits); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	r := policyreport.New(policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Selection{})
	r.Merge(many(policyreport.MaxParts + 1))
	if _, err := r.Encode(policyreport.OpenReports, policyreport.Limits{Results: 1}); err == nil {
		t.Error("a report of more parts than there may be")
	}
}

// change applies an edit to a stored part, as a user may with kubectl.
func change(t *testing.T, text []byte, edit func(o object)) []byte {
	t.Helper()
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	edit(o)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestUpdate: of a report that is read only what has changed is written, over the
// version that was read, and with what others have added to it.
func TestUpdate(t *testing.T) {
	at, limits := policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Limits{Results: 10}
	r := policyreport.New(at, policyreport.Selection{})
	r.Merge(many(25))
	parts, err := r.Encode(policyreport.PolicyReports, limits)
	if err != nil {
		t.Fatal(err)
	}
	var there [][]byte
	for _, part := range parts {
		there = append(there, change(t, stored(t, part.JSON), func(o object) {
			labels, _ := o.metadata()["labels"].(map[string]any)
			labels["team"] = "security"
			o.metadata()["annotations"] = joinedWith(o.metadata()["annotations"], "note", "seen")
			o.metadata()["finalizers"] = []any{"acme.example/keep"}
		}))
	}
	for _, row := range []struct {
		reason string
		merge  []result.Result
		drop   int
		want   string
	}{
		{"nothing has changed", many(25), 0, "keep keep keep"},
		{"one result has", []result.Result{failing(many(25)[12], "never")}, 0, "keep update keep"},
		{"one more", many(26)[25:], 0, "keep keep update"},
		{"a part more", many(31), 0, "update keep update create"},
		{"fewer", nil, 6, "update update delete"},
		{"none", nil, 25, "delete delete delete"},
	} {
		r := decode(t, at, policyreport.Selection{}, there)
		r.Merge(row.merge)
		for _, gone := range many(25)[25-row.drop:] {
			r.ForgetResource(gone.Resource)
		}
		parts, err := r.Encode(policyreport.PolicyReports, limits)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, part := range parts {
			got = append(got, string(part.Action))
			if part.Action != policyreport.Create && part.Version != "4711" {
				t.Errorf("%s: %s of version %q", row.reason, part.Name, part.Version)
			}
			if part.Action == policyreport.Update {
				kept(t, row.reason, part.JSON)
			}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %v, want %s", row.reason, got, row.want)
		}
		other, err := r.Encode(policyreport.OpenReports, limits)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range other {
			if part.Action != policyreport.Create || strings.Contains(string(part.JSON), "4711") {
				t.Errorf("%s: %s in the other API", row.reason, part.Action)
			}
		}
	}
}

func joinedWith(annotations any, name, value string) map[string]any {
	all := map[string]any{name: value}
	if before, ok := annotations.(map[string]any); ok {
		maps.Copy(all, before)
	}
	return all
}

func failing(r result.Result, message string) result.Result {
	r.Message, r.Time = message, r.Time.Add(1)
	return r
}

func kept(t *testing.T, reason string, text []byte) {
	t.Helper()
	for _, part := range []string{`"team":"security"`, `"note":"seen"`, `"acme.example/keep"`, `"resourceVersion":"4711"`, `"app.kubernetes.io/managed-by":"quaymaster"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s: an update loses %s:\n%s", reason, part, text)
		}
	}
	if strings.Contains(string(text), "managedFields") {
		t.Errorf("%s: an update sends managed fields", reason)
	}
}

// TestDecodeRefuses: a foreign report is neither read as ours nor overwritten.
func TestDecodeRefuses(t *testing.T) {
	r := policyreport.New(policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Selection{})
	r.Merge(many(3))
	good := encode(t, r, policyreport.PolicyReports)[0].JSON
	for _, row := range []struct {
		reason string
		text   []byte
		ok     bool
		is     error
	}{
		{"a report of ours", good, true, nil},
		{"no JSON", []byte("{"), false, nil},
		{"another kind", change(t, good, func(o object) { o["kind"] = "ConfigMap" }), false, nil},
		{"another version", change(t, good, func(o object) { o["apiVersion"] = "wgpolicyk8s.io/v1beta1" }), false, nil},
		{"larger than any that can be stored", append(good, make([]byte, 4<<20)...), false, nil},
		{"another writer's", change(t, good, func(o object) {
			o.metadata()["labels"] = map[string]any{"app.kubernetes.io/managed-by": "kyverno"}
		}), false, policyreport.ErrForeign},
		{"without a label", change(t, good, func(o object) { delete(o.metadata(), "labels") }), false, policyreport.ErrForeign},
	} {
		_, err := policyreport.Decode(policyreport.Place{Namespace: "shop", Name: "all"}, policyreport.Selection{}, [][]byte{row.text})
		if (err == nil) != row.ok || row.is != nil && !errors.Is(err, row.is) || errors.Is(err, policyreport.ErrForeign) != (row.is != nil) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestEdited: an edited report loses its invalid results, and is put
// right when its objects are evaluated again.
func TestEdited(t *testing.T) {
	at := policyreport.Place{Namespace: "shop", Name: "all"}
	r := policyreport.New(at, policyreport.Selection{})
	r.Merge(many(3))
	good := encode(t, r, policyreport.PolicyReports)
	first := func(o object) map[string]any {
		results, _ := o["results"].([]any)
		one, _ := results[0].(map[string]any)
		return one
	}
	for _, row := range []struct {
		reason string
		edit   func(o object)
		left   int
	}{
		{"nothing", func(object) {}, 3},
		{"another source", func(o object) { first(o)["source"] = "falco" }, 2},
		{"a result that there is not", func(o object) { first(o)["result"] = "maybe" }, 2},
		{"no policy", func(o object) { delete(first(o), "policy") }, 2},
		{"no resources", func(o object) { delete(first(o), "resources") }, 2},
		{"a resource without a name", func(o object) { first(o)["resources"] = []any{map[string]any{"kind": "Pod"}} }, 2},
		{"a resource that is there already", func(o object) {
			results, _ := o["results"].([]any)
			o["results"] = append(results, results[1])
		}, 3},
		{"no results", func(o object) { delete(o, "results") }, 0},
		{"another scope", func(o object) { o["scope"] = map[string]any{"kind": "Pod", "name": "web", "namespace": "shop"} }, 0},
		{"another summary", func(o object) { o["summary"] = map[string]any{"pass": 99} }, 3},
		{"a fair result", func(o object) { first(o)["result"], first(o)["message"] = "pass", "all is well" }, 3},
	} {
		edited := decode(t, at, policyreport.Selection{}, [][]byte{change(t, good[0].JSON, row.edit)})
		if parts := encode(t, edited, policyreport.PolicyReports); len(read(t, parts)) != row.left {
			t.Errorf("%s: %d results are left, want %d", row.reason, len(read(t, parts)), row.left)
		}
		again := many(3)
		for i := range again {
			again[i].Time = again[i].Time.Add(1)
		}
		edited.Merge(again)
		if got := encode(t, edited, policyreport.PolicyReports); len(read(t, got)) != 3 || read(t, got)[0].Result != "fail" {
			t.Errorf("%s: it is not put right:\n%s", row.reason, texts(got))
		} else if row.reason != "nothing" && got[0].Action != policyreport.Update {
			t.Errorf("%s: %s of an edited report", row.reason, got[0].Action)
		}
	}
}

// FuzzDecode: any user may have edited a report. The decoded report can be written, and
// read again without a difference.
func FuzzDecode(f *testing.F) {
	at, show := policyreport.Place{Namespace: "shop", Name: "all", Scope: report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "owner", UID: "u"}}, policyreport.Selection{CountPasses: true}
	r := policyreport.New(at, show)
	r.Merge(many(2))
	parts, err := r.Encode(policyreport.OpenReports, policyreport.Limits{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0].JSON)
	f.Add([]byte(strings.ReplaceAll(string(parts[0].JSON), "web-0001", "web-0000")))
	f.Add([]byte(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"ClusterPolicyReport","metadata":{"labels":{"app.kubernetes.io/managed-by":"quaymaster"},"annotations":{"quaymaster.dev/unlisted":"pass=AAABBBB.AAABBBBCCCC skip=!!!!!!!"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		policyreport.Parts(text)
		read, err := policyreport.Decode(at, show, [][]byte{text})
		if err != nil {
			return
		}
		parts, err := read.Encode(policyreport.PolicyReports, policyreport.Limits{})
		if err != nil {
			return // others have added more than there is room for
		}
		again := decode(t, at, show, contents(parts))
		for _, part := range encode(t, again, policyreport.PolicyReports) {
			if part.Action != policyreport.Keep {
				t.Errorf("%s of an unchanged report:\n%s\n%s", part.Action, texts(parts), part.JSON)
			}
		}
	})
}

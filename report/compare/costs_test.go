package compare_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report/compare"
)

const (
	apiServer = `# HELP apiserver_admission_webhook_admission_duration_seconds x
apiserver_admission_webhook_admission_duration_seconds_bucket{name="validate.kyverno.svc-fail",operation="CREATE",rejected="false",type="validating",le="0.005"} 1
apiserver_admission_webhook_admission_duration_seconds_sum{name="validate.kyverno.svc-fail",operation="CREATE",rejected="false",type="validating"} 1.5
apiserver_admission_webhook_admission_duration_seconds_count{name="validate.kyverno.svc-fail",operation="CREATE",rejected="false",type="validating"} 100
apiserver_admission_webhook_admission_duration_seconds_sum{name="validate.quaymaster.dev",operation="CREATE",rejected="false",type="validating"} 0.5
apiserver_admission_webhook_admission_duration_seconds_count{name="validate.quaymaster.dev",operation="CREATE",rejected="false",type="validating"} 100
apiserver_admission_webhook_admission_duration_seconds_sum{name="quota.example.com",operation="CREATE",rejected="false",type="validating"} 9
`
	itself = "kyverno_admission_review_duration_seconds_sum{resource_kind=\"Pod\"} 2\nkyverno_admission_review_duration_seconds_count{resource_kind=\"Pod\"} 100 1700000000000\n"
)

// TestCosts: savings are reported by a source that measured both engines, and by no other.
func TestCosts(t *testing.T) {
	fail := ours("web", "registry.example/web:1", "fail", "unsigned", "Enforce", noon)
	for _, row := range []struct {
		reason, decision, scrape string
		want                     float64 // milliseconds; 0 means no report
		by                       compare.Account
		costs                    int
	}{
		{"the API server measured both", fail, apiServer, 10, compare.ByAPIServer, 3},
		{"each measured itself", fail, itself, 17.5, compare.ByItself, 2},
		{"the API server counts more", fail, apiServer + itself, 10, compare.ByAPIServer, 4},
		{"no measurement of ours", "", itself, 0, "", 1},
		{"no measurement of theirs", fail, "", 0, "", 1},
		{"one by the API server, the other by itself", fail, strings.ReplaceAll(apiServer, "quaymaster", "nobody"), 0, "", 2},
		{"numbers that are none", fail, strings.NewReplacer(" 2\n", " NaN\n", " 100 ", " +Inf ").Replace(itself), 0, "", 1},
		{"no calls", fail, strings.Replace(itself, " 100 ", " 0 ", 1), 0, "", 1},
	} {
		var decisions []string
		if row.decision != "" {
			decisions = append(decisions, row.decision, row.decision) // two images of one object cost once
		}
		c := collected(t, decisions, nil, nil)
		if err := c.Metrics(strings.NewReader(row.scrape)); err != nil {
			t.Fatal(err)
		}
		got := c.Compare(noon)
		saved := 0.0
		if got.Saved.Milliseconds != nil {
			saved = *got.Saved.Milliseconds
		}
		if saved != row.want || got.Saved.By != row.by || len(got.Costs) != row.costs || len(got.Saved.Unreported) == 0 {
			t.Errorf("%s: %+v, %+v", row.reason, got.Saved, got.Costs)
		}
		for _, cost := range got.Costs {
			if cost.Engine == compare.Quaymaster && cost.By == compare.ByItself && (cost.Calls != 1 || *cost.Requests != 3) || cost.Engine == compare.Kyverno && cost.Requests != nil {
				t.Errorf("%s: %+v", row.reason, cost)
			}
		}
	}
}

// TestUnreadable: what makes no sense is counted and left out, and the rest is read.
func TestUnreadable(t *testing.T) {
	c := compare.New()
	for _, text := range []string{"", "{", `{"kind":""}`, `[]`, `{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"labels":{"app.kubernetes.io/managed-by":"quaymaster"}},"results":"none"}`, strings.Repeat(" ", 4<<20)} {
		if err := c.Object([]byte(text)); err == nil {
			t.Errorf("%.40q was read", text)
		}
	}
	if c.Unreadable() != 6 {
		t.Errorf("%d were counted", c.Unreadable())
	}
	long := strings.Repeat("x", 5<<20)
	if err := c.Audit(strings.NewReader("no\n" + long + "\n\n" + oneLine(audit(400, kyvernoDenial, "")) + "{}")); err != nil {
		t.Fatal(err)
	}
	if err := c.Log(strings.NewReader("no\n" + long + "\n" + oneLine(ours("web", "registry.example/web:1", "pass", "", "Enforce", noon)))); err != nil {
		t.Fatal(err)
	}
	if got := c.Compare(noon); brief(got) != "denied-only-there" || got.Summary.Unreadable != 11 {
		t.Errorf("got %q, %d unreadable", brief(got), got.Summary.Unreadable)
	}
}

// TestBounds: the entries are bounded, and those beyond are counted.
func TestBounds(t *testing.T) {
	c := compare.New()
	c.Bound(3)
	for i := range 5 {
		for range 2 { // an existing entry is replaced
			if err := c.Audit(strings.NewReader(oneLine(strings.Replace(audit(201, "", ""), `"name":"web"`, `"name":"web-`+strconv.Itoa(i)+`"`, 1)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := c.Compare(noon); got.Summary.LeftOut != 4 || got.Summary.Theirs != 3 {
		t.Errorf("got %+v", got.Summary)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		kyverno("web", entry("fail", "unverified image registry.example/web:1", noon)), policyEvent("Pod shop/web: [by-us] fail (blocked); no"),
		audit(400, kyvernoDenial, ""), audit(400, sigstore, ""), audit(500, `failed calling webhook "validate.kyverno.svc-fail": no`, ""), apiServer, itself,
		ours("web", "registry.example/web:1", "fail", "unsigned", "Enforce", noon), `{"kind":"Event","apiVersion":"v1","reason":"FailedCreate","message":"admission webhook \"policy.sigstore.dev\" denied the request: validation failed: invalid value: nginx must be an image digest: spec"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := compare.New()
		_ = c.Object([]byte(text)) // anything may be wrong with it
		for _, read := range []func() error{
			func() error { return c.Audit(strings.NewReader(text)) }, func() error { return c.Log(strings.NewReader(text)) },
			func() error { return c.Metrics(strings.NewReader(text)) },
		} {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}
		got := c.Compare(noon)
		counted := got.Summary.Agree + got.Summary.NeitherLooked
		for _, n := range got.Summary.Differ {
			counted += n
		}
		if ours, theirs := got.Summary.Ours, got.Summary.Theirs; counted > ours+theirs+ours*theirs {
			t.Errorf("%d verdicts, %d counted", got.Summary.Ours+got.Summary.Theirs, counted)
		}
	})
}

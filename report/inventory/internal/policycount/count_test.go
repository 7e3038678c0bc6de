package policycount_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/policycount"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

var begin = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func of(c *policycount.Counts, now time.Time) map[string]policycount.Policy {
	all := map[string]policycount.Policy{}
	c.Each(now, func(p policycount.Policy) { all[p.ID] = p })
	return all
}

// TestOverTime counts the results of a policy by interval, with its last failure and error.
func TestOverTime(t *testing.T) {
	signed := report.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h"}
	decided := func(result policy.Result, reasons ...policy.Reason) report.Record {
		return report.Record{Images: []report.Image{{Decisions: []report.Decision{{Policy: signed, Rule: "r", Action: policy.Enforce, Result: result, Reasons: reasons}}}}}
	}
	c := policycount.New()
	scan := report.Occasion{Time: begin, Process: report.ProcessScan}
	c.Add(report.Occasion{Time: begin.Add(-48 * time.Hour)}, decided(policy.Pass))
	c.Add(report.Occasion{Time: begin.Add(-47 * time.Hour)}, decided(policy.Fail))
	c.Add(scan, decided(policy.Indeterminate, policy.Reason{Code: policy.Unavailable, Message: strings.Repeat("x", 2000)}))
	c.Add(scan, report.Record{Rules: []report.Rule{{Policy: signed, Rule: "skipped", Skipped: "no", Kind: policy.ValidateRule}}})

	got := of(&c, begin)["ClusterPolicy/signed"]
	if len(got.Moments) != 2 || got.Moments[0].Results != (verdict.Results{Pass: 1, Fail: 1}) || got.Moments[1].Results != (verdict.Results{Error: 1}) {
		t.Errorf("over time: %+v", got.Moments)
	}
	if got.Admission != (verdict.Results{Pass: 1, Fail: 1}) || got.Scan != (verdict.Results{Error: 1}) || len(got.Rules) != 1 {
		t.Errorf("in all: %+v", got)
	}
	if !got.LastFail.Equal(begin.Add(-47*time.Hour)) || got.LastError == nil || !got.LastError.Time.Equal(begin) || got.LastError.Code != "registry-unavailable" ||
		len(got.LastError.Message) > 700 {
		t.Errorf("last: %+v, %+v", got.LastFail, got.LastError)
	}
	if got := of(&c, begin.Add(30*24*time.Hour))["ClusterPolicy/signed"]; len(got.Moments) != 0 {
		t.Errorf("a month later: %+v", got.Moments)
	}
	c.Evict(begin.Add(time.Hour), 2*time.Hour)
	if c.Len() != 1 {
		t.Error("a recent policy is evicted")
	}
	c.Evict(begin.Add(3*time.Hour), 2*time.Hour)
	if c.Len() != 0 {
		t.Error("an old policy is kept")
	}
}

// TestBounds: names of policies come from records of any origin.
func TestBounds(t *testing.T) {
	c := policycount.New()
	for n := range 3000 {
		c.Add(report.Occasion{Time: begin}, report.Record{Rules: []report.Rule{{Policy: report.Policy{Kind: "K", Name: fmt.Sprint(n)}, Kind: policy.ValidateRule, Result: policy.Pass}}})
	}
	for n := range 300 {
		c.Add(report.Occasion{Time: begin}, report.Record{Rules: []report.Rule{{Policy: report.Policy{Kind: "K", Name: "0"}, Rule: fmt.Sprint(n), Kind: policy.ValidateRule, Result: policy.Pass}}})
	}
	c.Add(report.Occasion{Time: begin}, report.Record{Rules: []report.Rule{{Policy: report.Policy{Kind: "K"}, Kind: policy.ValidateRule, Result: policy.Pass}}})
	if got := of(&c, begin); len(got) != 2000 || len(got["K/0"].Rules) != 100 {
		t.Errorf("%d policies, and %d rules of one", len(got), len(got["K/0"].Rules))
	}
}

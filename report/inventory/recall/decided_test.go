package recall_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/report/result"
)

// there are the policies of about, as they are now.
func there(id string) *policy.Policy {
	switch id {
	case "ClusterPolicy/signed":
		return &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "newer", Metadata: policy.Metadata{Category: "Images", Severity: "high"}}
	case "Policy/shop/small":
		return &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "small", Metadata: policy.Metadata{Unscored: true}}
	}
	return nil
}

// TestDecided: results from a log equal those of the decisions themselves.
func TestDecided(t *testing.T) {
	owned := about(t, 3, gate.Allow)
	owned.Outcome.Subject.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"uid": "u3", "ownerReferences": []any{
		map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true},
	}}})
	failed := about(t, 4, gate.Allow)
	failed.Outcome.Rules[0].Ruling = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "it is too large"}}}
	excepted := about(t, 5, gate.Allow)
	excepted.Outcome.Rules[0] = policy.RuleResult{
		Policy: excepted.Outcome.Rules[0].Policy, Rule: "limits", Kind: policy.ValidateRule, Action: policy.Warn, Skip: "as the exception says",
		Exception: &policy.Exception{Namespace: "shop", Name: "for-web"},
	}
	overridden := about(t, 6, gate.Deny)
	overridden.Outcome.Verdicts[1].Override = &policy.Override{Name: "until-monday", Effect: policy.OverrideAllow}
	overridden.Outcome.Verdicts[1].Result, overridden.Outcome.Result, overridden.Occasion.Allowed = gate.Allow, gate.Allow, true
	broken := about(t, 7, gate.Allow)
	broken.Outcome.Rules[0] = policy.RuleResult{Policy: broken.Outcome.Rules[0].Policy, Rule: "limits", Kind: policy.ValidateRule, Action: policy.Enforce, Err: errors.New("no ConfigMap")}
	mutated := about(t, 8, gate.Allow)
	mutated.Occasion.Endpoint = "mutate"
	scanned := about(t, 9, gate.Allow)
	scanned.Occasion.Process, scanned.Occasion.Endpoint = report.ProcessScan, ""
	told := []report.Decided{about(t, 1, gate.Allow), about(t, 2, gate.Deny), owned, failed, excepted, overridden, broken}

	var got []report.Decided
	folder := written(t, append(append([]report.Decided{}, told...), mutated, scanned))
	err := recall.Decided(recall.Source{Folder: folder}, there, func(d report.Decided) error {
		got = append(got, d)
		return nil
	})
	if err != nil || len(got) != len(told) {
		t.Fatalf("%d objects, %v; want %d: the last of the validating webhook, and no scan", len(got), err, len(told))
	}
	for i := range told {
		if want, is := logged(told[i]), logged(got[i]); !reflect.DeepEqual(want, is) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", told[i].Outcome.Subject.Name, is, want)
		}
		if a, b := told[i].Occasion, got[i].Occasion; a.Allowed != b.Allowed || a.Process != b.Process || !a.Time.Equal(b.Time) {
			t.Errorf("%s: the occasion is %+v, want %+v", told[i].Outcome.Subject.Name, b, a)
		}
	}
}

// logged are the results, without the fields that a line does not have: a policy's metadata
// is the current one, and the reason of a skipped rule is unknown.
func logged(d report.Decided) []result.Result {
	results := result.Of(d)
	for i := range results {
		r := &results[i]
		now := there(r.Policy.Kind + "/" + r.Policy.String())
		r.Policy.Category, r.Policy.Severity, r.Policy.Unscored = now.Category, now.Severity, now.Unscored
		if r.Policy.Unscored && r.Status == result.Fail {
			r.Status = result.Warn
		}
		r.Time = r.Time.UTC()
		if r.Status == result.Skip && r.Code == "" || r.Status == result.Pass {
			r.Message, r.Code = "", ""
		}
	}
	return results
}

// TestDecidedIsBounded: older decisions, results of a deleted policy, and decisions after
// an error are not reported.
func TestDecidedIsBounded(t *testing.T) {
	var all []report.Decided
	for n := range 4 {
		all = append(all, about(t, n, gate.Allow))
	}
	folder := written(t, all)
	stop := errors.New("enough")
	for _, row := range []struct {
		reason   string
		from     recall.Source
		policies func(string) *policy.Policy
		fail     bool
		want     string // the names, and how many results each has
	}{
		{"all", recall.Source{}, there, false, "web-0:3 web-1:3 web-2:3 web-3:3"},
		{"since a time", recall.Source{Since: noon.Add(2 * time.Second)}, there, false, "web-2:3 web-3:3"},
		{"nothing is so new", recall.Source{Since: noon.Add(time.Hour)}, there, false, ""},
		{"nothing is so new in the lines before", recall.Source{Since: noon.Add(time.Hour), Through: 6}, there, false, ""},
		{"of a policy that is gone", recall.Source{Since: noon.Add(3 * time.Second)}, func(id string) *policy.Policy {
			if id == "ClusterPolicy/signed" {
				return nil
			}
			return there(id)
		}, false, "web-3:1"},
		{"the callback stops", recall.Source{}, there, true, "web-0:3"},
	} {
		row.from.Folder = folder
		var got []string
		err := recall.Decided(row.from, row.policies, func(d report.Decided) error {
			got = append(got, d.Outcome.Subject.Name+":"+string(rune('0'+len(result.Of(d)))))
			if row.fail {
				return stop
			}
			return nil
		})
		if strings.Join(got, " ") != row.want || errors.Is(err, stop) != row.fail || err != nil && !row.fail {
			t.Errorf("%s: %v, %v; want %s", row.reason, got, err, row.want)
		}
	}
	if err := recall.Decided(recall.Source{Folder: folder}, nil, nil); err == nil {
		t.Error("no callback and no policies were accepted")
	}
}

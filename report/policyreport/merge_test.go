package policyreport_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// word reads a result such as "3 pod-a fail no +two @sha256:1": at minute 3 the pod has the
// result fail, under version two of the policy, for an image with that digest.
func word(t *testing.T, text string) result.Result {
	t.Helper()
	fields := strings.Fields(text)
	minute, err := strconv.Atoi(fields[0])
	if err != nil || len(fields) < 3 {
		t.Fatalf("no word: %q", text)
	}
	r := result.Result{
		Policy: result.Policy{Kind: "ClusterPolicy", Name: "p", Hash: "first"}, Rule: "r", Status: result.Status(fields[2]),
		Time: morning.Add(time.Duration(minute) * time.Minute), Process: report.ProcessAdmission, Resource: objectNamed(fields[1]),
	}
	if r.Resource.Kind != "Pod" {
		r.Rule = "autogen-r"
	}
	if r.Status == result.Fail {
		r.Code = policy.Violated
	}
	for _, field := range fields[3:] {
		switch {
		case strings.HasPrefix(field, "+"):
			r.Policy.Hash = field[1:]
		case strings.HasPrefix(field, "@"):
			r.Image = &result.Image{Container: "web", Written: "nginx", Digest: field[1:]}
		case strings.HasPrefix(field, "/"):
			r.Rule = field[1:]
		default:
			r.Message = strings.ReplaceAll(field, "_", " ")
		}
	}
	return r
}

func objectNamed(name string) report.Resource {
	switch {
	case strings.HasPrefix(name, "owner"):
		return named("apps/v1", "Deployment", "shop", "owner").resource()
	case strings.HasPrefix(name, "set"):
		return named("apps/v1", "ReplicaSet", "shop", name).resource()
	case strings.HasPrefix(name, "rollout"):
		return named("argoproj.io/v1alpha1", "Rollout", "shop", name).resource()
	}
	return named("v1", "Pod", "shop", name).resource()
}

func words(t *testing.T, text string) []result.Result {
	t.Helper()
	var all []result.Result
	for one := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(one) != "" {
			all = append(all, word(t, one))
		}
	}
	return all
}

// rendered returns a report as text: shared results first, and then those by object.
func rendered(t *testing.T, r *policyreport.Report) string {
	t.Helper()
	var lines []string
	for _, one := range read(t, encode(t, r, policyreport.PolicyReports)) {
		line := one.Result
		if one.Message != "" {
			line += " " + strings.ReplaceAll(one.Message, " ", "_")
		}
		if len(one.Resources) > 0 {
			line = one.Resources[0].Name + " " + line
		}
		lines = append(lines, line)
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Count(a, " ") - strings.Count(b, " ") })
	return strings.Join(lines, "; ")
}

// TestWorkload: the results of pods, their owner and the objects between them become one
// shared result and those that are listed. Each merge is followed by a write and a
// read, as if another replica took over.
func TestWorkload(t *testing.T) {
	for _, row := range []struct {
		reason  string
		merges  []string
		want    string
		changes string
	}{
		{"all say the same", []string{"0 owner pass; 0 set-1 pass; 1 pod-a pass; 2 pod-b pass"}, "pass", "y"},
		{"a pod more is no change", []string{"1 pod-a pass", "2 pod-b pass"}, "pass", "yn"},
		{"the owner's result precedes its pods'", []string{"0 owner pass", "1 pod-a pass"}, "pass", "yy"},
		{"only the owner has a result", []string{"0 owner pass"}, "owner pass", "y"},
		{"one pod differs", []string{"1 pod-a pass; 1 pod-b pass", "2 pod-c fail no"}, "pass; pod-c fail no", "yy"},
		{"and comes to agree", []string{"1 pod-a pass; 1 pod-b pass", "2 pod-c fail no", "3 pod-c pass"}, "pass", "yyy"},
		{"and differs again, without a change", []string{"1 pod-a pass; 1 pod-b pass", "2 pod-c fail no", "3 pod-c fail no"}, "pass; pod-c fail no", "yyn"},
		{"an older word is none", []string{"1 pod-a pass; 1 pod-b pass", "3 pod-c fail no", "2 pod-c pass"}, "pass; pod-c fail no", "yyn"},
		{"of those that come at once, most", []string{"1 pod-a fail no; 2 pod-b pass; 3 pod-c pass"}, "pass; pod-a fail no", "y"},
		{"of those that come one by one, the first", []string{"1 pod-a fail no", "2 pod-b pass"}, "fail no; pod-b pass", "yy"},
		{"pods have something that their template has not", []string{"0 owner pass; 0 set-1 pass; 1 pod-a fail no; 2 pod-b fail no", "3 pod-c fail no"}, "fail no; owner pass; set-1 pass", "yn"},
		{"the owner comes to differ", []string{"1 pod-a pass", "2 owner fail no"}, "pass; owner fail no", "yy"},
		{"a rollout: pods follow their owner", []string{"1 pod-a pass; 1 pod-b pass", "2 owner fail no", "3 pod-c fail no"}, "fail no", "yyy"},
		{"of which the old pods do not know yet", []string{"1 pod-a pass; 1 pod-b pass", "2 owner fail no", "3 pod-c fail no", "4 pod-a pass"}, "fail no; pod-a pass", "yyyy"},
		{"the policy has changed", []string{"1 pod-a pass; 1 pod-b pass", "2 pod-a fail no +second"}, "fail no", "yy"},
		{"and a pod that passes is listed", []string{"1 pod-a pass; 1 pod-b pass", "2 pod-a fail no +second", "3 pod-b pass +second"}, "fail no; pod-b pass", "yyy"},
		{"a result under the earlier policy is dropped", []string{"2 pod-a fail no +second", "1 pod-b pass"}, "fail no", "yn"},
		{"the same under another policy is a change", []string{"1 pod-a pass", "2 pod-a pass +second"}, "pass", "yy"},
		{"a path in the template is one in the pod", []string{"1 pod-a fail rule_r_failed_at_/spec/containers/0; 0 owner fail rule_autogen-r_failed_at_/spec/template/spec/containers/0"}, "fail rule_r_failed_at_/spec/containers/0", "y"},
		{"another path is another word", []string{"1 pod-a fail rule_r_failed_at_/spec/containers/0; 0 owner fail rule_autogen-r_failed_at_/spec/template/spec/containers/1"}, "fail rule_r_failed_at_/spec/containers/0; owner fail rule_autogen-r_failed_at_/spec/template/spec/containers/1", "y"},
		{"one digest", []string{"1 pod-a pass @sha256:1; 1 pod-b pass @sha256:1; 1 owner pass @sha256:1"}, "pass", "y"},
		{"the tag has moved", []string{"1 pod-a pass @sha256:1; 1 pod-b pass @sha256:1", "2 pod-c pass @sha256:2"}, "pass; pod-c pass", "yy"},
		{"errors are alike for any network error", []string{"1 pod-a error connection_from_port_1; 2 pod-b error connection_from_port_2", "3 pod-a error connection_from_port_3"}, "error connection_from_port_1", "yn"},
	} {
		for _, show := range []policyreport.Selection{{}, {CountPasses: true}} {
			at := place(t, policyreport.ByWorkload, word(t, "1 pod-a pass"), objectNamed("owner"))
			r, changes := policyreport.New(at, show), ""
			for _, merge := range row.merges {
				changes += map[bool]string{true: "y", false: "n"}[r.Merge(words(t, merge))]
				r = decode(t, at, show, contents(encode(t, r, policyreport.OpenReports)))
			}
			got := rendered(t, r)
			if show.CountPasses {
				// A shared result that is counted has no time, no policy and no digest: what
				// replaces it for those differs, and is listed.
				if all := strings.Join(row.merges, ";"); !strings.Contains(all, "+second") && !strings.Contains(all, "@sha256:2") {
					counted(t, row.reason, r, row.want)
				}
				continue
			}
			if got != row.want || changes != row.changes {
				t.Errorf("%s: %q, changed %s; want %q, %s", row.reason, got, changes, row.want, row.changes)
			}
		}
	}
}

// counted compares a report that counts passes with the rows of one that shows them.
func counted(t *testing.T, reason string, r *policyreport.Report, want string) {
	t.Helper()
	passes := 0
	shown := []string{}
	for one := range strings.SplitSeq(want, "; ") {
		if strings.HasSuffix(one, "pass") {
			passes++
		} else {
			shown = append(shown, one)
		}
	}
	summary := 0
	for _, part := range encode(t, r, policyreport.PolicyReports) {
		summary += readOne(t, part.JSON).Summary["pass"]
	}
	if got := rendered(t, r); got != strings.Join(shown, "; ") || summary != passes {
		t.Errorf("%s, passes counted: %q and %d passes, want %q and %d", reason, got, summary, shown, passes)
	}
}

// TestAlone: in the report of one object its newest word holds.
func TestAlone(t *testing.T) {
	for _, row := range []struct {
		reason  string
		by      policyreport.Grouping
		merges  []string
		want    string
		changes string
	}{
		{"a newer word", policyreport.ByResource, []string{"1 pod-a pass", "2 pod-a fail no"}, "fail no", "yy"},
		{"an older word", policyreport.ByResource, []string{"2 pod-a fail no", "1 pod-a pass"}, "fail no", "yn"},
		{"a newer time", policyreport.ByResource, []string{"1 pod-a fail no", "2 pod-a fail no"}, "fail no", "yn"},
		{"another message", policyreport.ByResource, []string{"1 pod-a fail no", "2 pod-a fail never"}, "fail never", "yy"},
		{"a lone pod", policyreport.ByWorkload, []string{"1 pod-a pass", "2 pod-a fail no"}, "fail no", "yy"},
		{"two in a namespace", policyreport.ByNamespace, []string{"1 pod-a pass; 1 pod-b pass", "2 pod-a fail no"}, "pod-b pass; pod-a fail no", "yy"},
		{"two of a policy", policyreport.ByPolicy, []string{"1 pod-a pass; 1 pod-b pass", "2 pod-a fail no"}, "pod-b pass; pod-a fail no", "yy"},
		{"the namespace's pods, by what follows from them", policyreport.ByNamespace, []string{"1 owner pass; 1 pod-b pass"}, "owner pass; pod-b pass", "y"},
	} {
		first := words(t, row.merges[0])[0]
		at := place(t, row.by, first, report.Resource{})
		r, changes := policyreport.New(at, policyreport.Selection{}), ""
		for _, merge := range row.merges {
			changes += map[bool]string{true: "y", false: "n"}[r.Merge(words(t, merge))]
			r = decode(t, at, policyreport.Selection{}, contents(encode(t, r, policyreport.PolicyReports)))
		}
		if got := rendered(t, r); got != row.want || changes != row.changes {
			t.Errorf("%s: %q, changed %s; want %q, %s", row.reason, got, changes, row.want, row.changes)
		}
	}
}

// TestUnknownOwner: an object of an unknown kind turns out to have pods.
func TestUnknownOwner(t *testing.T) {
	at := place(t, policyreport.ByWorkload, word(t, "1 rollout pass /r"), report.Resource{})
	r := policyreport.New(at, policyreport.Selection{})
	for _, step := range []struct{ merge, want string }{
		{"1 rollout pass /r", "pass"},
		{"2 pod-a fail no", "fail no; rollout pass"},
		{"3 pod-b fail no", "fail no; rollout pass"},
		{"4 rollout fail no /r", "fail no"},
		{"5 rollout pass /r", "fail no; rollout pass"},
	} {
		r.Merge(words(t, step.merge))
		r = decode(t, at, policyreport.Selection{}, contents(encode(t, r, policyreport.PolicyReports)))
		if got := rendered(t, r); got != step.want {
			t.Errorf("after %s: %q, want %q", step.merge, got, step.want)
		}
	}
}

// TestGoing: what ends, and what stays.
func TestGoing(t *testing.T) {
	const before = "1 pod-a pass; 1 pod-b pass; 2 pod-c fail no; 2 pod-d fail never; 0 owner warn"
	policies := func(name string) []result.Policy { return []result.Policy{{Kind: "ClusterPolicy", Name: name}} }
	at := func(minute int) time.Time { return morning.Add(time.Duration(minute) * time.Minute) }
	for _, row := range []struct {
		reason string
		do     func(r *policyreport.Report) bool
		want   string
		change bool
	}{
		{"a pod that is listed is gone", func(r *policyreport.Report) bool { return r.ForgetResource(objectNamed("pod-c")) }, "pass; owner warn; pod-d fail never", true},
		{"one that is not listed is gone", func(r *policyreport.Report) bool { return r.ForgetResource(objectNamed("pod-a")) }, "pass; owner warn; pod-c fail no; pod-d fail never", false},
		{"the policy is gone", func(r *policyreport.Report) bool { return r.Keep(policies("q")) }, "", true},
		{"the policy is there", func(r *policyreport.Report) bool { return r.Keep(policies("p")) }, "pass; owner warn; pod-c fail no; pod-d fail never", false},
		{"another kind of that name is there", func(r *policyreport.Report) bool {
			return r.Keep([]result.Policy{{Kind: "ValidatingPolicy", Name: "p"}})
		}, "", true},
		{"the rule does not match it any more", func(r *policyreport.Report) bool { return r.Replace(objectNamed("pod-c"), at(3), nil) }, "pass; owner warn; pod-d fail never", true},
		{"but was asked before it did", func(r *policyreport.Report) bool { return r.Replace(objectNamed("pod-c"), at(1), nil) }, "pass; owner warn; pod-c fail no; pod-d fail never", false},
		{"but was not asked", func(r *policyreport.Report) bool {
			return r.Replace(objectNamed("pod-c"), at(3), nil, policies("p")...)
		}, "pass; owner warn; pod-c fail no; pod-d fail never", false},
		{"but this rule was not asked", func(r *policyreport.Report) bool {
			return r.ReplaceOthers(objectNamed("pod-c"), at(3), nil, policyreport.Staying{Rules: []result.Rule{{Policy: policies("p")[0], Rule: "r"}}})
		}, "pass; owner warn; pod-c fail no; pod-d fail never", false},
		{"but another rule was not asked", func(r *policyreport.Report) bool {
			return r.ReplaceOthers(objectNamed("pod-c"), at(3), nil, policyreport.Staying{Rules: []result.Rule{{Policy: policies("p")[0], Rule: "s"}}})
		}, "pass; owner warn; pod-d fail never", true},
		{"it has another result", func(r *policyreport.Report) bool {
			return r.Replace(objectNamed("pod-c"), at(3), words(t, "3 pod-c skip"))
		}, "pass; owner warn; pod-c skip; pod-d fail never", true},
		{"the policy has no such rule any more", func(r *policyreport.Report) bool {
			return r.Replace(objectNamed("pod-c"), at(3), words(t, "3 pod-c skip /other +second"))
		}, "skip; owner warn; pod-d fail never", true},
		{"the policy has this rule, which was not asked", func(r *policyreport.Report) bool {
			staying := policyreport.Staying{Rules: []result.Rule{{Policy: policies("p")[0], Rule: "r"}}}
			return r.ReplaceOthers(objectNamed("pod-c"), at(3), words(t, "3 pod-c skip /other +second"), staying)
		}, "skip; pass; owner warn; pod-c fail no; pod-d fail never", true},
	} {
		for _, reread := range []bool{false, true} {
			where := place(t, policyreport.ByWorkload, word(t, "1 pod-a pass"), objectNamed("owner"))
			r := policyreport.New(where, policyreport.Selection{})
			r.Merge(words(t, before))
			if reread {
				r = decode(t, where, policyreport.Selection{}, contents(encode(t, r, policyreport.PolicyReports)))
			}
			change := row.do(r)
			if got := rendered(t, r); got != row.want || change != row.change {
				t.Errorf("%s: %q, change %t; want %q, %t", row.reason, got, change, row.want, row.change)
			}
		}
	}
}

// TestSelection: results that are not shown are dropped or counted, and come and go with
// new results.
func TestSelection(t *testing.T) {
	failures := policyreport.Selection{Statuses: []result.Status{result.Fail, result.Error}}
	passes := policyreport.Selection{CountPasses: true}
	for _, row := range []struct {
		reason string
		show   policyreport.Selection
		merges []string
		want   string
	}{
		{"a pass is not shown", failures, []string{"1 pod-a pass; 1 owner pass"}, " []"},
		{"so that failures of pods are listed", failures, []string{"1 pod-a pass", "2 pod-b fail no"}, "pod-b fail no [fail:1]"},
		{"until they pass", failures, []string{"1 pod-b fail no", "2 pod-b pass"}, " []"},
		{"passes are counted", passes, []string{"1 pod-a pass; 1 owner pass"}, " [pass:1]"},
		{"beside failures", passes, []string{"1 pod-a pass", "2 pod-b fail no"}, "pod-b fail no [fail:1 pass:1]"},
		{"and once each", passes, []string{"1 pod-a pass", "2 pod-b fail no", "3 pod-b pass", "4 pod-c pass", "5 owner pass"}, " [pass:1]"},
		{"a pass beside a shared failure", passes, []string{"1 pod-a fail no", "2 pod-b pass", "3 pod-b pass"}, "fail no [fail:1 pass:1]"},
		{"that comes to agree", passes, []string{"1 pod-a fail no", "2 pod-b pass", "3 pod-b fail no"}, "fail no [fail:1]"},
	} {
		at := place(t, policyreport.ByWorkload, word(t, "1 pod-a pass"), objectNamed("owner"))
		r := policyreport.New(at, row.show)
		for _, merge := range row.merges {
			r.Merge(words(t, merge))
			r = decode(t, at, row.show, contents(encode(t, r, policyreport.PolicyReports)))
		}
		got := rendered(t, r) + " ["
		for i, part := range encode(t, r, policyreport.PolicyReports) {
			var counts []string
			for status, n := range readOne(t, part.JSON).Summary {
				if n > 0 {
					counts = append(counts, fmt.Sprintf("%s:%d", status, n))
				}
			}
			slices.Sort(counts)
			if i == 0 {
				got += strings.Join(counts, " ")
			}
		}
		got += "]"
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

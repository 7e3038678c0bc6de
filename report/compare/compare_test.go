package compare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/compare"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// ours is a line of a decision log about one image of a pod, under the rule signed/by-us.
func ours(pod, image, result, code, action string, at time.Time) string {
	answer := map[string]string{"fail": "deny", "indeterminate": "error"}[result]
	if answer == "" || action != "Enforce" {
		answer = "allow"
	}
	return decision(pod, image, answer, `"rules":[{"policy":"ClusterPolicy/signed","rule":"by-us","result":"`+result+`","action":"`+action+`","reason":{"code":"`+code+`","message":"because"}}]`, at)
}

func decision(pod, image, answer, more string, at time.Time) string {
	if image != "" {
		more += `,"image":{"container":"c","written":"` + image + `"}`
	}
	return fmt.Sprintf(`{"v":1,"seq":1,"prev":"0","kind":"decision","time":%q,"replica":"a","decision":{"process":"admission review","endpoint":"validate","operation":"CREATE","uid":"r-%[2]s",
		"allowed":true,"result":%[3]q,"milliseconds":2.5,"requests":3,"object":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":%[2]q,"owner":{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%[2]s-rs","uid":"rs"}},%[4]s}}`,
		at.Format(time.RFC3339Nano), pod, answer, strings.TrimPrefix(more, ","))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") + "\n" }

// kyverno is a report as Kyverno writes it, for one pod.
func kyverno(pod, results string) string {
	return fmt.Sprintf(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"name":"uid-%[1]s","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"kyverno"},
		"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":%[1]q,"uid":"uid-%[1]s"}]},
		"scope":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":%[1]q,"uid":"uid-%[1]s"},"results":[%[2]s],"summary":{"pass":1,"fail":0,"warn":0,"error":0,"skip":0}}`, pod, results)
}

func entry(result, message string, at time.Time) string {
	return fmt.Sprintf(`{"source":"kyverno","policy":"signed","rule":"by-us","result":%q,"message":%q,"scored":true,"timestamp":{"seconds":%d,"nanos":0},"properties":{"process":"background scan"}}`, result, message, at.Unix())
}

// policyEvent is an event on a policy, which lies in the namespace default.
func policyEvent(note string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"signed.1","namespace":"default"},"reason":"PolicyViolation","type":"Warning","action":"Resource Blocked",
		"involvedObject":{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","name":"signed"},"related":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web"},
		"reportingComponent":"kyverno-admission","eventTime":%q,"message":%q}`, noon.Format(time.RFC3339Nano), note)
}

func audit(code int, message, more string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","namespace":"shop","name":"web","apiVersion":"v1"},
		"responseStatus":{"metadata":{},"code":%d,"message":%q},"stageTimestamp":%q%s}`, code, message, noon.Format(time.RFC3339Nano), more)
}

const (
	kyvernoDenial = "admission webhook \"mutate.kyverno.svc-fail\" denied the request: \n\nresource Pod/shop/web was blocked due to the following policies \n\nsigned:\n  by-us: 'failed to verify image registry.example/web:1: .attestors[0].entries[0].keys:\n    no signatures found'\n"
	sigstore      = "admission webhook \"policy.sigstore.dev\" denied the request: validation failed: failed policy: images: spec.containers[0].image\nregistry.example/web@" + digest + " signature key validation failed for authority authority-0 for registry.example/web@" + digest + ": no matching signatures"
)

// TestCompare: what becomes of each pair of verdicts.
func TestCompare(t *testing.T) {
	const web, other = "registry.example/web:1", "registry.example/other:1"
	pass, fail := ours("web", web, "pass", "", "Enforce", noon), ours("web", web, "fail", "unsigned", "Enforce", noon)
	blocked := policyEvent("Pod shop/web: [by-us] fail (blocked); failed to verify image " + web + ": no signatures found")
	rows := []struct {
		reason          string
		decisions       []string
		objects, audits []string
		want            string // classes, agreements, newly denied and new errors
	}{
		{"both admit", []string{pass}, []string{kyverno("web", entry("pass", "verified image signatures for "+web, noon))}, nil, "agree 1"},
		{"both deny", []string{fail}, []string{kyverno("web", entry("fail", "unverified image "+web, noon))}, nil, "agree 1"},
		{"they admit an unsigned image", []string{fail}, []string{kyverno("web", entry("pass", "verified from cache", noon))}, nil, "wrongly-admitted newly 1"},
		{"they admit an image that we could not verify", []string{ours("web", web, "indeterminate", "registry-unavailable", "Enforce", noon)}, []string{kyverno("web", entry("pass", "", noon))}, nil, "error error 1"},
		{"a failure with a code that proves nothing", []string{ours("web", web, "fail", "access-refused", "Enforce", noon)}, []string{kyverno("web", entry("pass", "", noon))}, nil, "error error 1"},
		{"a failure that would only be reported", []string{ours("web", web, "fail", "unsigned", "Audit", noon)}, []string{kyverno("web", entry("pass", "", noon))}, nil, "wrongly-admitted"},
		{"they deny what we admit", []string{pass}, []string{kyverno("web", entry("fail", "failed to verify image "+web+": .attestors[0].entries[0].keys: no matching signatures", noon))}, nil, "denied-only-there"},
		{"they could not verify", []string{pass}, []string{kyverno("web", entry("error", "GET https://registry.example/v2/: TOOMANYREQUESTS", noon))}, nil, "error-there"},
		{"neither could verify", []string{ours("web", web, "indeterminate", "timed-out", "Enforce", noon)}, []string{kyverno("web", entry("error", "timeout", noon))}, nil, "neither 1"},
		{"they have no result where we deny", []string{fail}, nil, nil, "only-here newly 1"},
		{"they have no result where we admit", []string{pass}, nil, nil, "only-here"},
		{"we have no result", nil, []string{kyverno("web", entry("fail", "", noon))}, nil, "only-there"},
		{"a skipped rule is no verdict", nil, []string{kyverno("web", entry("skip", "", noon))}, nil, ""},
		{"both only warn", []string{ours("web", web, "fail", "unsigned", "Warn", noon)}, []string{kyverno("web", entry("warn", "", noon))}, nil, "agree 1"},

		{"a result for each image", []string{pass, ours("web", other, "fail", "unsigned", "Enforce", noon)}, []string{kyverno("web", entry("pass", "verified image signatures for "+web, noon)+","+entry("fail", "failed to verify image "+other+": no signatures found", noon))}, nil, "agree 2"},
		{"a denial that names no image is of any of them", []string{pass, ours("web", other, "fail", "unsigned", "Enforce", noon)}, []string{kyverno("web", entry("fail", "image verification failed", noon))}, nil, "agree 1"},
		{"a denial that names no image, and we admit all", []string{pass, ours("web", other, "pass", "", "Enforce", noon)}, []string{kyverno("web", entry("fail", "image verification failed", noon))}, nil, "denied-only-there"},
		{"a pass is of all images, whichever it names", []string{pass, ours("web", other, "fail", "unsigned", "Enforce", noon)}, []string{kyverno("web", entry("pass", "verified image signatures for "+web, noon))}, nil, "wrongly-admitted agree 1 newly 1"},
		{"an image with a name that begins like another", []string{ours("web", web, "pass", "", "Enforce", noon)}, []string{kyverno("web", entry("fail", "failed to verify image "+web+"0: no signatures found", noon))}, nil, "only-here only-there"},

		{"the newest of theirs counts", []string{fail}, []string{kyverno("web", entry("pass", "", noon)), strings.ReplaceAll(kyverno("web", entry("fail", "", noon.Add(time.Minute))), "wgpolicyk8s.io/v1alpha2", "wgpolicyk8s.io/v1alpha2")}, nil, "agree 1"},
		{"the newest of ours counts", []string{fail, ours("web", web, "pass", "", "Enforce", noon.Add(time.Minute))}, []string{kyverno("web", entry("pass", "", noon))}, nil, "agree 1"},
		{"the newest of ours counts, whichever came first", []string{ours("web", web, "pass", "", "Enforce", noon.Add(time.Minute)), fail}, []string{kyverno("web", entry("pass", "", noon))}, nil, "agree 1"},

		{"a blocked request, by an event on the policy", []string{pass}, []string{blocked}, nil, "denied-only-there"},
		{"a blocked request that we deny, too", []string{fail}, []string{blocked}, nil, "agree 1"},
		{"an event of another source", []string{pass}, []string{strings.Replace(blocked, "kyverno-admission", "somebody", 1)}, nil, "only-here"},
		{"an event from a namespace about another", []string{pass}, []string{strings.Replace(blocked, `"namespace":"default"`, `"namespace":"evil"`, 1)}, nil, "only-here"},
		{"an event on the pod", []string{pass}, []string{`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"namespace":"shop"},"reason":"PolicyViolation","regarding":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web"},"reportingController":"kyverno-admission","note":"policy signed/by-us fail: no signatures found","eventTime":"2026-11-22T12:00:00.000000Z"}`}, nil, "denied-only-there"},
		{"an event of a policy that is met", []string{fail}, []string{strings.Replace(policyEvent("Pod shop/web: pass"), "PolicyViolation", "PolicyApplied", 1)}, nil, "wrongly-admitted newly 1"},
		{"an event of a policy that could not be evaluated", []string{pass}, []string{strings.Replace(policyEvent("Pod shop/web: [by-us] error; failed to fetch image descriptor"), "PolicyViolation", "PolicyError", 1)}, nil, "error-there"},
		{"an event of an exception", []string{pass}, []string{strings.Replace(policyEvent("resource Pod/shop/web was skipped from rule by-us due to policy exception shop/e"), "PolicyViolation", "PolicySkipped", 1)}, nil, "agree 1"},
		{"a controller with a denied pod", []string{pass}, []string{`{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"shop"},"reason":"FailedCreate","involvedObject":{"apiVersion":"apps/v1","kind":"ReplicaSet","namespace":"shop","name":"web-rs"},"lastTimestamp":"2026-11-22T12:00:00Z","message":` + fmt.Sprintf("%q", "Error creating: "+kyvernoDenial) + `}`}, nil, "denied-only-there"},

		{"a denial of Kyverno in the audit log", []string{pass}, nil, []string{audit(400, kyvernoDenial, "")}, "denied-only-there"},
		{"a denial of policy-controller of another policy of ours", []string{pass}, nil, []string{audit(400, sigstore, "")}, "only-here only-there"},
		{"a denial of policy-controller, of the image by its digest", []string{decision("web", "registry.example/web:1@"+digest, "allow", `"rules":[{"policy":"ClusterImagePolicy/images","rule":"authority-0","result":"pass"}]`, noon)}, nil, []string{audit(400, sigstore, "")}, "denied-only-there"},
		{"a denial of policy-controller, by its tag", []string{decision("web", web, "allow", `"rules":[{"policy":"ClusterImagePolicy/images","rule":"","result":"pass"}]`, noon)}, nil, []string{audit(400, sigstore, "")}, "denied-only-there"},
		{"a denial of another webhook", []string{pass}, nil, []string{audit(400, `admission webhook "quota.example.com" denied the request: no`, "")}, "only-here"},
		{"our own denial", []string{pass}, nil, []string{audit(403, `admission webhook "validate.quaymaster.dev" denied the request: no`, "")}, "only-here"},
		{"a webhook that gave no answer", []string{pass}, nil, []string{audit(500, `Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": failed to call webhook: Post "https://x": context deadline exceeded`, "")}, "error-there"},
		{"a webhook that failed open", []string{fail}, nil, []string{audit(201, "", `,"annotations":{"failed-open.validating.webhook.admission.k8s.io/round_0_index_0":"validate.kyverno.svc-ignore"}`)}, "error-there newly 1"},
		{"a request that came through", []string{fail}, nil, []string{audit(201, "", "")}, "wrongly-admitted newly 1"},
		{"a request that came through, under audit", []string{ours("web", web, "fail", "unsigned", "Audit", noon)}, nil, []string{audit(201, "", "")}, "agree 1"},
		{"a report outweighs a request that came through", []string{fail}, []string{kyverno("web", entry("fail", "", noon))}, []string{audit(201, "", "")}, "agree 1"},

		{"an override of ours, without a rule", []string{decision("web", web, "deny", `"reasons":[{"code":"override-denied","message":"stop"}]`, noon)}, []string{kyverno("web", entry("pass", "", noon))}, nil, "wrongly-admitted newly 1"},
		{"undecided", []string{decision("web", "", "", `"undecided":"queue-full"`, noon)}, []string{kyverno("web", entry("pass", "", noon))}, nil, "error error 1"},
		{"a deletion is no verdict", []string{strings.Replace(fail, "CREATE", "DELETE", 1)}, nil, nil, ""},

		{"a report of another tool", []string{pass}, []string{kyverno("web", strings.Replace(entry("fail", "", noon), `"source":"kyverno"`, `"source":"Trivy"`, 1))}, nil, "only-here"},
		{"a report about another namespace", []string{pass}, []string{strings.Replace(kyverno("web", entry("fail", "", noon)), `"namespace":"shop","labels"`, `"namespace":"evil","labels"`, 1)}, nil, "only-here"},
		{"a report of OpenReports", []string{fail}, []string{strings.NewReplacer("wgpolicyk8s.io/v1alpha2", "openreports.io/v1alpha1", `"PolicyReport"`, `"Report"`, `"message"`, `"description"`).Replace(kyverno("web", entry("pass", "", noon)))}, nil, "wrongly-admitted newly 1"},
		{"the rule of a policy of another kind", []string{decision("web", web, "deny", `"rules":[{"policy":"ImageValidatingPolicy/signed","rule":"signed","result":"fail","action":"Enforce"}]`, noon)}, []string{kyverno("web", strings.NewReplacer(`"kyverno"`, `"KyvernoImageValidatingPolicy"`, "by-us", "signed").Replace(entry("pass", "", noon)))}, nil, "wrongly-admitted newly 1"},
		{"a policy of the same name and another kind", []string{fail}, []string{kyverno("web", strings.Replace(entry("pass", "", noon), `"kyverno"`, `"KyvernoValidatingPolicy"`, 1))}, nil, "only-here only-there newly 1"},
		{"a rule for controllers, and ours for pods of the same one", []string{fail}, []string{strings.NewReplacer(`"kind":"Pod","namespace":"shop","name":"web","uid"`, `"kind":"ReplicaSet","namespace":"shop","name":"web-rs","uid"`, `"rule":"by-us"`, `"rule":"autogen-by-us"`).Replace(kyverno("web", entry("pass", "", noon)))}, nil, "wrongly-admitted newly 1"},
	}
	for _, row := range rows {
		c := collected(t, row.decisions, row.objects, row.audits)
		if got := brief(c.Compare(noon)); got != row.want || c.Unreadable() != 0 {
			t.Errorf("%s: %q, want %q; %d unreadable", row.reason, got, row.want, c.Unreadable())
		}
	}
}

func collected(t *testing.T, decisions, objects, audits []string) *compare.Collector {
	t.Helper()
	c := compare.New()
	for _, line := range decisions {
		if err := c.Log(strings.NewReader(oneLine(line))); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range objects {
		if err := c.Object([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range audits {
		if err := c.Audit(strings.NewReader(oneLine(line))); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// brief lists the classes and the counts.
func brief(c compare.Comparison) string {
	var words []string
	for _, class := range compare.Classes() {
		if n := c.Summary.Differ[class]; n == 1 {
			words = append(words, string(class))
		} else if n > 1 {
			words = append(words, fmt.Sprintf("%s %d", class, n))
		}
	}
	for _, count := range []struct {
		name string
		n    int
	}{{"agree", c.Summary.Agree}, {"neither", c.Summary.NeitherLooked}, {"newly", c.Summary.Newly}, {"error", c.Summary.NewErrors}} {
		if count.n > 0 {
			words = append(words, fmt.Sprintf("%s %d", count.name, count.n))
		}
	}
	return strings.Join(words, " ")
}

// TestReportsApplyToTheirOwnNamespace: a user with write access to the reports of a namespace
// cannot add results for objects of another, not by their UID either, in any engine's name.
func TestReportsApplyToTheirOwnNamespace(t *testing.T) {
	denied := strings.Replace(ours("web", "registry.example/web:1", "fail", "unsigned", "Enforce", noon), `"name":"web",`, `"name":"web","uid":"uid-web",`, 1)
	theirs := func(namespace string) string {
		return strings.ReplaceAll(kyverno("web", entry("fail", "", noon.Add(time.Hour))), `"namespace":"shop"`, `"namespace":"`+namespace+`"`)
	}
	own := func(namespace string) string {
		return strings.ReplaceAll(fmt.Sprintf(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"name":"r","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"quaymaster"}},
			"scope":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web","uid":"uid-web"},
			"results":[{"source":"quaymaster","policy":"signed","rule":"by-us","result":"pass","timestamp":{"seconds":%d,"nanos":0},"properties":{"container":"c","image":"registry.example/web:1","reason":"verified"}}]}`, noon.Add(time.Hour).Unix()),
			`"namespace":"shop"`, `"namespace":"`+namespace+`"`)
	}
	for _, row := range []struct {
		reason, report, want string
	}{
		{"theirs, of the same namespace", theirs("shop"), "agree 1"},
		{"theirs, of another one", theirs("evil"), "wrongly-admitted only-there newly 1"},
		{"ours, of the same namespace", own("shop"), "agree 1"},
		{"ours, of another one", own("evil"), "wrongly-admitted only-here newly 1"},
	} {
		if got := brief(collected(t, []string{denied}, []string{kyverno("web", entry("pass", "", noon)), row.report}, nil).Compare(noon)); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

// TestStale: a result older than the policy is marked, on its side.
func TestStale(t *testing.T) {
	policy := func(at time.Time, subresource string) string {
		return fmt.Sprintf(`{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"signed","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"x","time":%q,"subresource":%q}]}}`, at.Format(time.RFC3339), subresource)
	}
	for _, row := range []struct {
		reason             string
		theirs             time.Time
		policy             string
		theyAre, weAre     bool
		stale, differences int
	}{
		{"both are newer", noon, policy(noon.Add(-time.Hour), ""), false, false, 0, 1},
		{"theirs is older", noon.Add(-2 * time.Hour), policy(noon.Add(-time.Hour), ""), true, false, 1, 1},
		{"both are older", noon, policy(noon.Add(time.Hour), ""), true, true, 1, 1},
		{"a status is no change", noon, policy(noon.Add(time.Hour), "status"), false, false, 0, 1},
	} {
		c := collected(t, []string{ours("web", "registry.example/web:1", "fail", "unsigned", "Enforce", noon)}, []string{kyverno("web", entry("pass", "", row.theirs)), row.policy}, nil)
		got := c.Compare(noon)
		if len(got.Differences) != row.differences || got.Summary.Stale != row.stale || got.Differences[0].Theirs.Stale != row.theyAre || got.Differences[0].Ours.Stale != row.weAre {
			t.Errorf("%s: %+v %+v", row.reason, got.Summary, got.Differences)
		}
	}
}

// TestWorkloads: the pods of one Deployment are one row, and its own verdict that of all.
func TestWorkloads(t *testing.T) {
	var decisions, objects []string
	for i := range 5 {
		pod := fmt.Sprintf("web-%d", i)
		decisions = append(decisions, ours(pod, "registry.example/web:1", "fail", "unsigned", "Enforce", noon))
		objects = append(objects, kyverno(pod, entry("pass", "", noon)),
			fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"%s-rs","namespace":"shop","uid":"rs","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d","controller":true}]}}`, pod))
	}
	got := collected(t, decisions, objects, nil).Compare(noon)
	if len(got.Differences) != 1 || got.Differences[0].Objects != 5 || got.Differences[0].Kind != "Deployment" || got.Differences[0].Name != "web" ||
		got.Differences[0].Example != "Pod/web-0" || got.Differences[0].MatchedBy != "name" {
		t.Errorf("got %+v", got.Differences)
	}
	// Our report of the Deployment applies to its pods.
	own := fmt.Sprintf(`{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"name":"r","namespace":"shop","labels":{"app.kubernetes.io/managed-by":"quaymaster"}},
		"scope":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web","uid":"d"},
		"results":[{"source":"quaymaster","policy":"signed","rule":"by-us","result":"fail","message":"nobody signed it","timestamp":{"seconds":%d,"nanos":0},"properties":{"container":"c","image":"registry.example/web:1","reason":"unsigned"}}]}`, noon.Unix())
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","uid":"uid-web-0","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-0-rs","uid":"rs","controller":true}]}}`
	got = collected(t, nil, append(objects, own, pod), nil).Compare(noon)
	if got.Summary.Differ[compare.WronglyAdmitted] != 1 || got.Differences[0].MatchedBy != "workload" {
		t.Errorf("got %+v %+v", got.Summary, got.Differences)
	}
	// Also where they have another result for another of its pods.
	second := strings.NewReplacer("web-0-rs", "web-1-rs", "web-0", "web-1").Replace(pod)
	got = collected(t, nil, append(objects, own, pod, second, kyverno("web-1", entry("fail", "", noon.Add(time.Minute)))), nil).Compare(noon)
	if got.Summary.Differ[compare.WronglyAdmitted] != 1 || got.Summary.Agree != 1 {
		t.Errorf("got %+v %+v", got.Summary, got.Differences)
	}
}

// TestOrder: dangerous differences come first.
func TestOrder(t *testing.T) {
	got := collected(t, []string{
		ours("a", "registry.example/a:1", "pass", "", "Enforce", noon), ours("b", "registry.example/b:1", "indeterminate", "timed-out", "Enforce", noon),
		ours("c", "registry.example/c:1", "fail", "unsigned", "Audit", noon), ours("d", "registry.example/d:1", "fail", "wrong-key", "Enforce", noon), ours("e", "registry.example/e:1", "pass", "", "Enforce", noon),
	}, []string{
		kyverno("a", entry("fail", "", noon)), kyverno("b", entry("pass", "", noon)), kyverno("c", entry("pass", "", noon)), kyverno("d", entry("pass", "", noon)),
		kyverno("f", entry("pass", "", noon)),
	}, nil).Compare(noon)
	var names []string
	for _, d := range got.Differences {
		names = append(names, d.Name)
	}
	if strings.Join(names, " ") != "d-rs c-rs b-rs a-rs e-rs f" {
		t.Errorf("got %v", names)
	}
}

package review_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// queue is a Queue that counts the reserved bytes.
type queue struct {
	full     bool
	reserved int64
}

func (q *queue) Reserve(_ context.Context, _ string, size int64) (func(), error) {
	if q.full {
		return nil, errors.New("full")
	}
	q.reserved += size
	return func() { q.reserved -= size }, nil
}

func (q *queue) Enter(context.Context, string) (func(), error) { return func() {}, nil }

func TestBodies(t *testing.T) {
	const limit = 16
	for reason, row := range map[string]struct {
		method, kind, body string
		unsized, full      bool
		status             int // 0: read
		cause              review.Cause
		want               string
	}{
		"a body":                         {body: "{}", want: "{}"},
		"a body of unknown length":       {body: "{}", unsized: true, want: "{}"},
		"a media type with a parameter":  {body: "{}", kind: "application/json; charset=utf-8", want: "{}"},
		"as large as allowed":            {body: strings.Repeat("a", limit), want: strings.Repeat("a", limit)},
		"another method":                 {method: http.MethodGet, status: http.StatusMethodNotAllowed, cause: review.Malformed},
		"another media type":             {body: "{}", kind: "text/plain", status: http.StatusUnsupportedMediaType, cause: review.Malformed},
		"too large":                      {body: strings.Repeat("a", limit+1), status: http.StatusRequestEntityTooLarge, cause: review.Malformed, want: "aaaa"},
		"too large, of unknown length":   {body: strings.Repeat("a", limit+1), unsized: true, status: http.StatusRequestEntityTooLarge, cause: review.Malformed, want: "aaaa"},
		"no memory: the beginning alone": {body: "{\"a\":1}", full: true, status: http.StatusServiceUnavailable, cause: review.QueueFull, want: "{\"a\""},
	} {
		t.Run(reason, func(t *testing.T) {
			q := &queue{full: row.full}
			bodies := &review.Bodies{Queue: q, Max: limit, Keep: limit, Head: 4}
			var reader io.Reader = strings.NewReader(row.body)
			if row.unsized {
				reader = io.MultiReader(reader)
			}
			r := httptest.NewRequest(http.MethodPost, "/", reader)
			if row.method != "" {
				r.Method = row.method
			}
			r.Header.Set("Content-Type", "application/json")
			if row.kind != "" {
				r.Header.Set("Content-Type", row.kind)
			}
			body, err := bodies.ReadJSON(t.Context(), httptest.NewRecorder(), r)
			if string(body.Bytes) != row.want {
				t.Errorf("read %q, want %q", body.Bytes, row.want)
			}
			refused, isRefused := errors.AsType[*review.Error](err)
			if isRefused != (row.status != 0) || isRefused && (refused.Status != row.status || refused.Cause != row.cause || review.ReadCause(err) != row.cause) {
				t.Errorf("error %v", err)
			}
			body.Release()
			if q.reserved != 0 {
				t.Errorf("%d bytes are still reserved", q.reserved)
			}
		})
	}
}

func TestRun(t *testing.T) {
	for _, row := range []struct {
		reason string
		call   func(ctx context.Context) (string, error)
		value  string
		cause  review.Cause
		failed bool
		busy   bool
		after  time.Duration
	}{
		{"a result", func(context.Context) (string, error) { return "a", nil }, "a", review.Decided, false, false, 0},
		{"a result with an error", func(context.Context) (string, error) { return "a", errors.New("no labels") }, "a", review.Decided, true, false, 0},
		{"a panic", func(context.Context) (string, error) { panic("x") }, "", review.Panicked, true, false, 0},
		{"a result at the deadline", func(ctx context.Context) (string, error) { <-ctx.Done(); return "late", nil }, "late", review.Decided, false, false, time.Second},
		{"no result after own work", func(context.Context) (string, error) { <-time.After(time.Minute); return "", nil }, "", review.TimedOut, true, true, time.Second + review.Grace},
		{"no result after a wait", func(ctx context.Context) (string, error) {
			defer waittime.Begin(ctx)()
			<-time.After(time.Minute)
			return "", nil
		}, "", review.TimedOut, true, false, time.Second + review.Grace},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var done atomic.Int32
				began := time.Now()
				r := review.Run(ctx, func() { done.Add(1) }, row.call)
				if r.Value != row.value || r.Cause != row.cause || (r.Err != nil) != row.failed || r.Busy != row.busy || time.Since(began) != row.after {
					t.Errorf("%+v after %s", r, time.Since(began))
				}
				if isLate := row.cause == review.TimedOut; isLate != (done.Load() == 0) {
					t.Errorf("a late call holds its slot until it returns: done %d times", done.Load())
				}
				<-time.After(2 * time.Minute)
				synctest.Wait()
				if done.Load() != 1 {
					t.Errorf("done %d times", done.Load())
				}
			})
		})
	}
}

type namespaces map[string]int // number of requests

func (n namespaces) Labels(_ context.Context, name string) (map[string]string, error) {
	n[name]++
	if name == "gone" {
		return nil, errors.New("not found")
	}
	return map[string]string{"team": name}, nil
}

func TestSetLabels(t *testing.T) {
	asked := namespaces{}
	shop, again, gone, none := &policy.Subject{Namespace: "shop"}, &policy.Subject{Namespace: "shop"}, &policy.Subject{Namespace: "gone"}, &policy.Subject{}
	failed := review.SetLabels(t.Context(), asked, shop, again, gone, gone, none)
	if len(failed) != 1 || failed["gone"] == nil || asked["shop"] != 1 || asked["gone"] != 1 || len(asked) != 2 {
		t.Errorf("failed %v, read %v", failed, asked)
	}
	for _, s := range []*policy.Subject{shop, again} {
		if !s.NamespaceKnown || s.NamespaceLabels["team"] != "shop" || s.NamespaceLabels["kubernetes.io/metadata.name"] != "shop" {
			t.Errorf("%+v", s)
		}
	}
	if gone.NamespaceKnown || none.NamespaceKnown {
		t.Error("labels that could not be read are known")
	}
}

// setting is a failure setting.
type setting bool

func (s setting) FailOpen(*policy.Subject) bool { return bool(s) }

type broken struct{}

func (broken) FailOpen(*policy.Subject) bool    { panic("x") }
func (broken) Record(context.Context, struct{}) { panic("x") }

func TestAdmits(t *testing.T) {
	for _, row := range []struct {
		reason  string
		cause   review.Cause
		setting review.Failure
		busy    bool
		want    bool
	}{
		{"overload, open", review.QueueFull, setting(true), false, true},
		{"overload, closed", review.QueueFull, setting(false), false, false},
		{"a timeout, open", review.TimedOut, setting(true), false, true},
		{"a timeout by its own work", review.TimedOut, setting(true), true, false},
		{"an exhausted share", review.ShareTaken, setting(true), false, false},
		{"a panic", review.Panicked, setting(true), false, false},
		{"an invalid request", review.Malformed, setting(true), false, false},
		{"a setting that panics", review.QueueFull, broken{}, false, false},
	} {
		if got := row.cause.Admits(row.setting, &policy.Subject{}, row.busy); got != row.want {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
	review.Record[struct{}](t.Context(), broken{}, struct{}{}) // its panic goes no further
}

func TestQueueCause(t *testing.T) {
	share := fmt.Errorf("no capacity: %w", &fairqueue.WaitError{Reason: fairqueue.Share})
	if review.QueueCause(share) != review.ShareTaken || review.QueueCause(&fairqueue.WaitError{Reason: fairqueue.Full}) != review.QueueFull || review.QueueCause(errors.New("x")) != review.QueueFull {
		t.Error("the causes of a queue's errors")
	}
}

func TestSummary(t *testing.T) {
	verdicts := func(results ...gate.Result) (list []gate.Verdict) {
		for _, r := range results {
			list = append(list, gate.Verdict{Result: r})
		}
		return list
	}
	for want, o := range map[string]gate.Outcome{
		"1 of 1 image denied":                           {Result: gate.Deny, Verdicts: verdicts(gate.Deny)},
		"1 of 3 images denied, 1 could not be verified": {Result: gate.Deny, Verdicts: verdicts(gate.Deny, gate.Allow, gate.Error)},
		"2 of 2 images could not be verified":           {Result: gate.Error, Verdicts: verdicts(gate.Error, gate.Error)},
		"denied":                                        {Result: gate.Deny, Verdicts: verdicts(gate.Allow)},
		"could not be verified":                         {Result: gate.Error},
	} {
		if got := review.Summary(&o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := review.Summary(&gate.Outcome{Verdicts: verdicts("perhaps")}); got != "1 of 1 image denied" {
		t.Errorf("a result without meaning: %q", got)
	}
}

// TestObjections: a denial is listed once, in one line, with the policy and the rule; an image that is
// admitted, or of no rule, is not listed.
func TestObjections(t *testing.T) {
	signed, labels := &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}, &policy.Policy{Kind: "Policy", Namespace: "shop", Name: "labels"}
	because := func(message string) policy.Reason { return policy.Reason{Code: policy.Violated, Message: message} }
	failed := func(p *policy.Policy, action policy.Action, reason policy.Reason) policy.RuleResult {
		return policy.RuleResult{Policy: p, Rule: "r", Action: action, Ruling: policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{reason}}}
	}
	verdict := func(result gate.Result, action policy.Action, reasons ...policy.Reason) gate.Verdict {
		return gate.Verdict{Result: result, Reasons: reasons, Decisions: []policy.Decision{
			{Check: &policy.Check{Policy: signed, Rule: "check", Action: action}, Result: policy.Fail, Reasons: reasons},
		}}
	}
	broken := policy.Reason{Code: policy.PolicyError, Path: "ClusterPolicy/signed/r", Message: "gone"}
	for _, row := range []struct {
		reason  string
		outcome gate.Outcome
		want    []string
	}{
		{"a rule about the object", gate.Outcome{Rules: []policy.RuleResult{failed(labels, policy.Enforce, because("no\nlabel"))}, Reasons: []policy.Reason{because("no\nlabel")}}, []string{"policy labels.r: no label"}},
		{"under audit", gate.Outcome{Rules: []policy.RuleResult{failed(labels, policy.Audit, because("no label"))}, Warnings: []policy.Reason{because("no label")}}, nil},
		{"another rule with the same words denies", gate.Outcome{Rules: []policy.RuleResult{failed(labels, policy.Audit, because("no")), failed(signed, policy.Enforce, because("no"))}, Reasons: []policy.Reason{because("no")}}, []string{"policy signed.r: no"}},
		{"two images for one reason", gate.Outcome{Verdicts: []gate.Verdict{verdict(gate.Deny, policy.Enforce, because("unsigned")), verdict(gate.Deny, policy.Enforce, because("unsigned"))}}, []string{"policy signed.check: unsigned"}},
		{"all reasons of an image", gate.Outcome{Verdicts: []gate.Verdict{verdict(gate.Deny, policy.Enforce, because("unsigned"), because("ask the build team"))}}, []string{"policy signed.check: unsigned", "policy signed.check: ask the build team"}},
		{"an admitted image", gate.Outcome{Verdicts: []gate.Verdict{verdict(gate.Allow, policy.Enforce, because("unsigned"))}}, nil},
		{"an image under audit, which another policy denies", gate.Outcome{Verdicts: []gate.Verdict{verdict(gate.Deny, policy.Audit, because("unsigned"))}}, nil},
		{"a rule with an error", gate.Outcome{Rules: []policy.RuleResult{{Policy: signed, Rule: "r", Err: errors.New("gone")}}, Reasons: []policy.Reason{broken}}, []string{"policy signed.r: gone"}},
		{"an admitted error", gate.Outcome{Rules: []policy.RuleResult{{Policy: signed, Rule: "r", Err: errors.New("gone")}}, Warnings: []policy.Reason{broken}}, nil},
		{"no rule", gate.Outcome{Reasons: []policy.Reason{{Code: policy.Malformed, Message: "no reference"}}}, nil},
	} {
		var got []string
		for _, one := range review.Objections(&row.outcome) {
			got = append(got, one.String())
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

// Plain makes untrusted text safe for one line of a denial.
func ExamplePlain() {
	fmt.Println(review.Plain("registry.example/app\nallowed: \x1b[31mtrue", 40))
	fmt.Println(review.Plain(strings.Repeat("a", 100), 10))
	// Output:
	// registry.example/app allowed: ?[31mtrue
	// aaaaaaa...
}

package audit

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/scan"
)

// took counts what a sink was handed.
type took struct{ n int }

func (s *took) Take(report.Decided) { s.n++ }

// roundOf is a round's result for a pod of an image.
func roundOf(t testing.TB, name, content string, change func(*gate.Outcome)) report.Decided {
	t.Helper()
	ref, err := image.Parse("registry.example/web:1")
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte(content))})
	if err != nil {
		t.Fatal(err)
	}
	signed := &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h"}
	o := gate.Outcome{
		Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: name, Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"uid": name}})},
		Result:  gate.Deny, PolicyHash: "p", TrustGeneration: "t",
		Verdicts: []gate.Verdict{{
			Image: policy.Image{Container: "c", Ref: ref}, Pinned: pinned, Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "none"}},
			Decisions: []policy.Decision{{Check: &policy.Check{Policy: signed, Rule: "r"}, Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned}}}},
		}},
	}
	if change != nil {
		change(&o)
	}
	return report.Decided{Outcome: o, Occasion: report.Occasion{Time: time.Now(), Process: report.ProcessScan, Allowed: true}}
}

// TestScansReportChanges: a repeated result is not passed on, and any other is.
func TestScansReportChanges(t *testing.T) {
	for _, row := range []struct {
		reason  string
		content string
		change  func(*gate.Outcome)
		handed  int
	}{
		{"the same", "a", nil, 0},
		{"in other words, under another set of policies and trust", "a", func(o *gate.Outcome) {
			o.PolicyHash, o.TrustGeneration, o.Verdicts[0].Reasons[0].Message, o.Duration = "q", "u", "no signature", time.Second
		}, 0},
		{"another answer", "a", func(o *gate.Outcome) { o.Verdicts[0].Result = gate.Error }, 1},
		{"another reason", "a", func(o *gate.Outcome) { o.Verdicts[0].Reasons[0].Code = policy.NoAttestation }, 1},
		{"another digest", "b", nil, 1},
		{"another policy", "a", func(o *gate.Outcome) {
			o.Verdicts[0].Decisions[0].Check = &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "h2"}, Rule: "r"}
		}, 1},
		{"a warning in place of a reason", "a", func(o *gate.Outcome) {
			v := &o.Verdicts[0]
			v.Reasons, v.Warnings = nil, v.Reasons
		}, 1},
	} {
		var to took
		n := &changed{to: &to, lost: func() uint64 { return 0 }, most: 10}
		n.Take(roundOf(t, "web", "a", nil))
		n.Take(roundOf(t, "web", row.content, row.change))
		if to.n != 1+row.handed {
			t.Errorf("%s: %d handed on after the first, want %d", row.reason, to.n-1, row.handed)
		}
		n.Take(roundOf(t, "web", row.content, row.change))
		n.Take(roundOf(t, "other", row.content, row.change))
		if to.n != 2+row.handed {
			t.Errorf("%s, again, and of another pod: %d", row.reason, to.n)
		}
	}
}

// TestNewsIsBounded: each object of a cluster that fits is reported once, while objects come and
// go, and a larger cluster repeats some. Results that may be lost are reported again.
func TestNewsIsBounded(t *testing.T) {
	var to took
	lost := uint64(0)
	n := &changed{to: &to, lost: func() uint64 { return lost }, most: 100}
	round := func(from, through int) int {
		before := to.n
		for i := from; i < through; i++ {
			n.Take(roundOf(t, strconv.Itoa(i), "a", nil))
		}
		return to.n - before
	}
	for r := range 20 { // ten pods go and ten come
		want := 10
		if r == 0 {
			want = 90
		}
		if got := round(10*r, 10*r+90); got != want {
			t.Errorf("round %d: %d reported, want %d", r, got, want)
		}
	}
	lost++
	if got := round(190, 280); got != 90 {
		t.Errorf("after something was lost: %d reported, want all", got)
	}
	round(1000, 1500)
	if held := len(n.older) + len(n.newer); round(1000, 1500) == 0 || held > 200 {
		t.Errorf("%d held of 500, and none reported", held)
	}
}

// TestScanUpdatesInventory: objects that a round does not find leave the inventory, but not
// objects outside of the round.
func TestScanUpdatesInventory(t *testing.T) {
	known, err := inventory.New(inventory.Options{Replica: "a"})
	if err != nil {
		t.Fatal(err)
	}
	receivers := Sinks{Inventory: known}.passReceivers([]string{"kube-*"}, slog.New(slog.DiscardHandler))
	began := time.Now()
	take := func(namespace, content string, at time.Time) {
		d := roundOf(t, namespace+content, content, func(o *gate.Outcome) { o.Subject.Namespace = namespace })
		d.Occasion.Time = at
		known.Take(d)
	}
	take("shop", "deleted", began.Add(-time.Minute))
	take("kube-system", "unlooked", began.Add(-time.Minute))
	take("shop", "there", began.Add(time.Second))
	receivers.Passed(t.Context(), *scan.NewPass(scan.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"}, began))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go known.Run(ctx)
	shown := func(want int) {
		t.Helper()
		testkit.Eventually(t, func() error {
			page, err := known.Images(inventory.ImageQuery{})
			if err == nil && page.Total != want {
				err = fmt.Errorf("%d images, want %d: %+v", page.Total, want, page.Items)
			}
			return err
		})
	}
	shown(3)
	receivers.Passed(t.Context(), *scan.NewPass(podKind, began))
	shown(2)
	page, err := known.Images(inventory.ImageQuery{Digest: image.DigestOf([]byte("deleted")).String()})
	if err != nil || page.Total != 0 {
		t.Errorf("a deleted object: %+v, %v", page, err)
	}
	if got := (Sinks{}).passReceivers(nil, nil); len(got) != 0 {
		t.Errorf("without sinks, %d are notified", len(got))
	}
}

package report_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// TestOverrides: the use of an override is in the record, in the log and in the text.
func TestOverrides(t *testing.T) {
	o := &policy.Override{Name: "bad-day", Effect: policy.OverrideAllow, Reason: "INC-7", Expires: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)}
	said := policy.Overruling{Override: o, By: "repository a.example/b"}
	unsigned := policy.Reason{Code: policy.Unsigned, Path: "attestors[0]", Message: "no signature found"}
	check := &policy.Check{Policy: &policy.Policy{Kind: "Test", Name: "signed"}, Rule: "rule", Action: policy.Enforce}
	outcome := gate.Outcome{Subject: &policy.Subject{Kind: "Pod", Name: "web"}, Result: gate.Allow, Verdicts: []gate.Verdict{{
		Image: policy.Image{Container: "c", Role: "container", Ref: image.MustParse("a.example/b:v1")}, Result: gate.Allow, Override: o,
		Reasons: []policy.Reason{said.Reason()}, Warnings: []policy.Reason{unsigned},
		Decisions: []policy.Decision{{Check: check, Result: policy.Fail, Reasons: []policy.Reason{unsigned}}},
	}}}
	found := report.NewRecord(outcome).Images[0]
	if found.Override != "ImageOverride/bad-day" || found.Reasons[0].Code != policy.OverrideAllowed || found.Decisions[0].Effect != report.EffectWarn {
		t.Errorf("%+v", found)
	}
	var log, text strings.Builder
	report.Log(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), outcome)
	if err := report.Text(&text, []gate.Outcome{outcome}, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"log": log.String(), "text": text.String()} {
		for _, want := range []string{"bad-day", "INC-7", "2999-01-01T00:00:00Z"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in the %s:\n%s", want, name, got)
			}
		}
	}
	if !strings.Contains(log.String(), "override=ImageOverride/bad-day") {
		t.Errorf("the log does not name it:\n%s", log.String())
	}
	outcome.Verdicts[0].Override = nil
	if found := report.NewRecord(outcome).Images[0]; found.Override != "" || found.Decisions[0].Effect != report.EffectDeny {
		t.Errorf("without an override: %+v", found)
	}
}

package status

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/diagnosis"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example is the state of a gateway with a finding of each result.
func example() *state {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	v := &health.State{
		Namespace: "quaymaster", Time: at, Kubernetes: "v1.37.0", Settings: health.Settings{Mode: "enforce"},
		Replicas: health.Replicas{
			Deployments: []health.Deployment{{Name: "quaymaster", Ready: 1, Wanted: 2}},
			Items: []health.Replica{
				{Name: "quaymaster-a", State: health.Ready, Version: "v1.0.0"},
				{Name: "quaymaster-b", State: health.NotReady, Reasons: []string{"ImagePullBackOff: no such image"}, Metrics: health.Unread{Unknown: "the pod does not run", Fix: "kubectl -n quaymaster describe pod quaymaster-b"}},
			},
		},
		Leaders:     health.Leaders{Items: []health.Leader{{Lease: "quaymaster", Holder: "quaymaster-a", Renewed: at.Add(-time.Second), Duration: 12 * time.Second}}},
		Certificate: health.Certificate{Expires: at.Add(60 * 24 * time.Hour), Replica: "quaymaster-a", AuthorityExpires: at.Add(300 * 24 * time.Hour)},
		Webhooks: health.Webhooks{Confirmed: at.Add(-20 * time.Second), Items: []health.Webhook{
			{Kind: "MutatingWebhookConfiguration", Name: "quaymaster", State: health.Intact, Count: 2}, {Kind: "ValidatingWebhookConfiguration", Name: "quaymaster", State: health.Changed, Count: 3},
		}},
		Policies: health.Policies{Kinds: []health.PolicyKind{{Kind: "ClusterPolicy", Ready: 3, NotReady: 1}, {Kind: "ImageValidatingPolicy", Unknown: 1}}, Items: []health.Policy{
			{Kind: "ClusterPolicy", Name: "signed", Ready: "False", Reason: "Broken", Message: "spec.rules[0].verifyImages[0]: unknown field imageReferencez"},
			{Kind: "ImageValidatingPolicy", Name: "slsa", Ready: "Unknown", Reason: "WebhookNotObserved", Message: "the webhook configurations hold it, and not every API server uses them yet"},
		}},
		Trust:       health.Trust{AgeSeconds: 3600, StaleKeys: 1, Expires: map[string]time.Time{"fulcio": at.Add(400 * 24 * time.Hour)}},
		Registries:  health.Registries{Items: []health.Registry{{Host: "registry.example", Requests: 100, Unanswered: 2}, {Host: "mirror.example", Resting: true}}},
		Permissions: health.Permissions{Unread: health.Unread{Unknown: "your user has no permission to create subjectaccessreviews.authorization.k8s.io in the cluster", Fix: "grant it"}, Accounts: []string{}, Missing: []health.Permission{}},
		Clocks:      health.Clocks{AheadSeconds: -0.2, AccuracySeconds: 0.5, Replicas: []health.ReplicaClock{{Name: "quaymaster-a", AheadSeconds: 0.1}}},
	}
	return &state{namespace: "quaymaster", program: "quaymaster", value: v, findings: diagnosis.Of(v)}
}

// TestGolden: the outputs are a contract, or are looked at.
func TestGolden(t *testing.T) {
	s := example()
	for name, document := range map[string]any{"status.json": statusDocument(s), "doctor.json": doctorDocument(s), "status.txt": statusText(s), "doctor.txt": doctorText(s)} {
		got, isText := document.(string)
		if !isText {
			text, err := json.MarshalIndent(document, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = string(text) + "\n"
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from the golden file; run the test with -update\n%s", name, got)
		}
	}
}

// TestUnknownIsNotGood: no part that was not read has the sign of a good one.
func TestUnknownIsNotGood(t *testing.T) {
	u := health.Unread{Unknown: "it may not be read", Fix: "grant it"}
	v := &health.State{Namespace: "quaymaster", Settings: health.Settings{Unread: u}, Replicas: health.Replicas{Unread: u}, Leaders: health.Leaders{Unread: u}, Certificate: health.Certificate{Unread: u},
		Webhooks: health.Webhooks{Unread: u}, Policies: health.Policies{Unread: u}, Trust: health.Trust{Unread: u}, Registries: health.Registries{Unread: u}, Permissions: health.Permissions{Unread: u}}
	s := &state{namespace: "quaymaster", program: "quaymaster", value: v, findings: diagnosis.Of(v)}
	for _, text := range []string{statusText(s), doctorText(s)} {
		if strings.Contains(text, "✓") || !strings.Contains(text, "? unknown") {
			t.Errorf("%s", text)
		}
	}
	if c := diagnosis.Count(s.findings); c.OK != 0 || c.Unknown == 0 {
		t.Errorf("%+v", c)
	}
}

// TestForgedLines: names in a cluster forge no line of the output.
func TestForgedLines(t *testing.T) {
	s := example()
	s.value.Replicas.Items[0].Reasons = []string{"x\n✓ ok       policies     forged"}
	s.findings = append(s.findings, diagnosis.Finding{Check: "policies", Subject: "ClusterPolicy/p", Result: diagnosis.Problem, Message: "x\n✓ ok       policies     forged", Fix: "y\n✓ ok       policies     forged"})
	for _, text := range []string{statusText(s), doctorText(s)} {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "✓") && strings.Contains(line, "forged") {
				t.Errorf("a forged line:\n%s", text)
			}
		}
	}
}

package journal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/verify"
)

// admitted is a pod with one image that a signature proves: one line.
func admitted(t testing.TB) report.Decided {
	t.Helper()
	ref, err := image.Parse("registry.example/acme/web:1.4")
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("web"))})
	if err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "5f2c0bbeed3a3a7d2a9f2b1d1b0d6c7e9a8b7c6d5e4f30211203f4e5d6c7b8a9"}
	fact := verify.Fact{
		Subject: pinned.Digest(), Format: "cosign", Role: "signature", SignedAt: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC),
		Signer:  verify.Signer{Subject: "https://github.com/acme/web/.github/workflows/release.yml@refs/heads/main", Issuer: "https://token.actions.githubusercontent.com"},
		Entries: []verify.LogEntry{{LogID: "c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d", Index: 42}},
		Origin:  attest.Origin{Repository: ref.Repository(), Via: "sha256-x.sig", Manifest: image.DigestOf([]byte("signature"))},
	}
	return report.Decided{
		Occasion: report.Occasion{
			Time: time.Now(), Process: report.ProcessAdmission, Endpoint: "validate", UID: "9b0c2f4e-6a52-4c3e-8a4b-0f6f1f0f9f6d",
			Operation: "CREATE", User: "system:serviceaccount:kube-system:replicaset-controller", Groups: []string{"system:serviceaccounts", "system:authenticated"}, Allowed: true,
		},
		Outcome: gate.Outcome{
			Subject: &policy.Subject{
				Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web-7d9c6b5f4-x2x5z",
				Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"uid": "5d1f", "ownerReferences": []any{
					map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9c6b5f4", "uid": "77", "controller": true},
				}}}),
			},
			Result: gate.Allow, PolicyHash: p.Hash, TrustGeneration: p.Hash,
			Verdicts: []gate.Verdict{{
				Image: policy.Image{Container: "web", Ref: ref}, Pinned: pinned, Result: gate.Allow,
				Reasons: []policy.Reason{{Code: policy.Verified, Message: "signed by the release workflow"}},
				Decisions: []policy.Decision{{
					Check: &policy.Check{Policy: p, Rule: "by-release", Entry: "verifyImages[0]", Action: policy.Enforce}, Result: policy.Pass,
					Reasons: []policy.Reason{{Code: policy.Verified}}, Facts: []verify.Fact{fact},
				}},
			}},
		},
	}
}

// numbered is the same of another request.
func numbered(of report.Decided, n int) report.Decided {
	of.Occasion.UID = strconv.Itoa(n)
	return of
}

func key(t testing.TB) (*decisionlog.Key, decisionlog.Keys) {
	t.Helper()
	k, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	_, public, err := k.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := decisionlog.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	return k, keys
}

// quiet returns settings for a folder, which discard errors.
func quiet(folder string) journal.Config {
	return journal.Config{Folder: folder, Replica: "replica-a", Program: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// running is a journal at work.
type running struct {
	*journal.Journal
	stop func() error
}

// run runs a journal until it is stopped, or the test ends.
func run(t testing.TB, config journal.Config, k *decisionlog.Key) running {
	t.Helper()
	j, err := journal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return runIt(t, j, k)
}

func runIt(t testing.TB, j *journal.Journal, k *decisionlog.Key) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx, k) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case <-j.Ready():
	case err := <-ended:
		cancel()
		ended <- err
		t.Fatal(err)
	}
	return running{Journal: j, stop: stop}
}

// flush waits until all taken decisions are on disk.
func flush(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Flush(t.Context(), j.Mark()); err != nil {
		t.Fatal(err)
	}
}

// uids are those of the requests in a log, in their order.
func uids(t testing.TB, folder string) []string {
	t.Helper()
	var found []string
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Kind == decisionlog.KindDecision {
			found = append(found, line.Decision.UID)
		}
	}
	return found
}

func counted(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// verified checks a log.
func verified(t testing.TB, folder string, keys decisionlog.Keys) decisionlog.Summary {
	t.Helper()
	got, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

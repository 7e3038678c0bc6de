package decisionlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/verify"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// deployed is a pod with one image, proved by a signature and judged by rules.
func deployed(t testing.TB, n int) report.Decided {
	t.Helper()
	ref, err := image.Parse("registry.example/acme/web:1.4")
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("web"))})
	if err != nil {
		t.Fatal(err)
	}
	signed := &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "5f2c0bbeed3a3a7d2a9f2b1d1b0d6c7e9a8b7c6d5e4f30211203f4e5d6c7b8a9"}
	safe := &policy.Policy{Kind: "ClusterPolicy", Name: "restricted", Hash: "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"}
	fact := verify.Fact{
		Subject: pinned.Digest(), Format: "cosign", Role: "signature",
		Signer:   verify.Signer{Subject: "https://github.com/acme/web/.github/workflows/release.yml@refs/heads/main", Issuer: "https://token.actions.githubusercontent.com"},
		SignedAt: noon, TimeSource: verify.LogTime, Entries: []verify.LogEntry{{LogID: "c0d23d6a", Index: 42}},
		Origin: attest.Origin{Repository: ref.Repository(), Via: "sha256-x.sig", Manifest: image.DigestOf([]byte("signature"))},
	}
	return report.Decided{
		Occasion: report.Occasion{
			Time: noon.Add(time.Duration(n) * time.Second), Process: report.ProcessAdmission, Endpoint: "validate", UID: "request-" + strconv.Itoa(n),
			Operation: "CREATE", User: "jo@acme.example", Groups: []string{"developers", "system:authenticated"}, Allowed: true,
		},
		Outcome: gate.Outcome{
			Subject: &policy.Subject{
				Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web-" + strconv.Itoa(n),
				Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"uid": "u" + strconv.Itoa(n)}}),
			},
			Result: gate.Allow, PolicyHash: "policies", TrustGeneration: "trust",
			Verdicts: []gate.Verdict{{
				Image: policy.Image{Container: "web", Ref: ref}, Pinned: pinned, Result: gate.Allow,
				Reasons: []policy.Reason{{Code: policy.Verified, Message: "signed by the release workflow"}},
				Decisions: []policy.Decision{{
					Check: &policy.Check{Policy: signed, Rule: "by-release", Entry: "verifyImages[0]", Action: policy.Enforce}, Result: policy.Pass,
					Reasons: []policy.Reason{{Code: policy.Verified}}, Facts: []verify.Fact{fact},
				}},
			}},
			Rules: []policy.RuleResult{{Policy: safe, Rule: "no-root", Kind: policy.ValidateRule, Action: policy.Enforce}},
		},
	}
}

// written is a log in a folder, of two files, with a checkpoint in each and a third one
// in the first file's middle.
type written struct {
	folder string
	key    *decisionlog.Key
	keys   decisionlog.Keys
	files  []string
}

// keyOf makes a key and what checks it.
func keyOf(t testing.TB) (*decisionlog.Key, decisionlog.Keys) {
	t.Helper()
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	_, public, err := key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := decisionlog.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	return key, keys
}

func write(t testing.TB) written {
	t.Helper()
	w := written{folder: t.TempDir()}
	w.key, w.keys = keyOf(t)
	chain, err := decisionlog.NewChain("replica-a", decisionlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for file, why := range []string{decisionlog.WhyNew, decisionlog.WhyRotation} {
		first := chain.Position().Seq + 1
		text := appended(t, chain, nil, decisionlog.Entry{Kind: decisionlog.KindOpen, Time: noon, Open: &decisionlog.Open{Chain: "c1", Why: why, Key: w.key.ID()}})
		for part := range 2 - file {
			for range 2 {
				for _, d := range decisionlog.Decisions(deployed(t, n)) {
					text = appended(t, chain, text, decisionlog.Entry{Kind: decisionlog.KindDecision, Time: noon, Decision: &d})
				}
				n++
			}
			text, err = chain.AppendCheckpoint(text, "c1", noon.Add(time.Duration(n)*time.Minute), file == 1 && part == 0, w.key)
			if err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(w.folder, decisionlog.SegmentName(first))
		w.files = append(w.files, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func appended(t testing.TB, chain *decisionlog.Chain, text []byte, e decisionlog.Entry) []byte {
	t.Helper()
	text, err := chain.Append(text, &e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lines are those of a file, without their line breaks.
func lines(t testing.TB, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

// rewrite puts lines into a file's place.
func rewrite(t testing.TB, path string, all [][]byte) {
	t.Helper()
	text := append(bytes.Join(all, []byte("\n")), '\n')
	if len(all) == 0 {
		text = nil
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

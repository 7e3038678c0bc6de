package report_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

const hub = "RegistryMirror/hub[0]"

var (
	here  = image.DigestOf([]byte("what the source serves"))
	there = image.DigestOf([]byte("what the mirror serves"))
)

// mirrored is an outcome that a mirror matches, for its texts alone: package
// gate's tests make such outcomes of registries.
type mirrored struct {
	name, reason string
	answer       gate.Result
	redirect     gate.Redirect
	reasons      []policy.Reason
	warnings     []policy.Reason
	copy         string // stands in the object, and nginx is judged
}

func (m mirrored) outcome(t testing.TB) gate.Outcome {
	t.Helper()
	written := parse(t, "nginx:1.27")
	judged := policy.Image{Container: "image", Role: "container", Pointer: "/spec/containers/0/image", Ref: written}
	verdict := gate.Verdict{Image: judged, Pinned: pin(t, written, here), Result: m.answer, Reasons: m.reasons, Warnings: m.warnings, Duration: time.Millisecond}
	if m.copy != "" {
		verdict.Image.Ref = parse(t, m.copy)
		judged.Copy = verdict.Image.Ref
		verdict.Pinned = pin(t, judged.Copy, here)
		passed := policy.Reason{Code: policy.Verified, Message: "signed by key e2067adefc44e9bd"}
		verdict.Decisions = []policy.Decision{{
			Check:  &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "hub"}, Rule: "signed", Entry: "verifyImages[0]", Image: judged},
			Result: policy.Pass, Reasons: []policy.Reason{passed},
		}}
		verdict.Reasons = []policy.Reason{passed}
	} else {
		verdict.Redirect = &m.redirect
	}
	return gate.Outcome{
		Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "default", Name: "image"},
		Result:  m.answer, Verdicts: []gate.Verdict{verdict}, PolicyHash: "0f", TrustGeneration: "0e",
	}
}

func parse(t testing.TB, written string) image.Ref {
	t.Helper()
	ref, err := image.Parse(written)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func pin(t testing.TB, ref image.Ref, digest image.Digest) image.Pinned {
	t.Helper()
	pinned, err := ref.Pin(image.Descriptor{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

func mirroredCases(t testing.TB) []mirrored {
	t.Helper()
	near, far := parse(t, "near.corp:5000/hub/library/nginx:1.27"), parse(t, "far.corp/hub/library/nginx:1.27")
	nobody := []policy.Reason{{Code: policy.NotConcerned, Message: "no policy matches this image"}}
	and := func(r policy.Reason) []policy.Reason { return append([]policy.Reason{r}, nobody...) }
	down := &image.Error{Kind: image.Unavailable, Op: "resolve", On: near.String(), Err: errors.New("dial tcp 192.0.2.1:5000: connection refused")}
	return []mirrored{
		{
			name: "first", reason: "the first target serves the digest", answer: gate.Allow,
			redirect: gate.Redirect{Mirror: hub, Target: pin(t, near, here), Attempts: []redirect.Attempt{
				{Target: near, State: redirect.Chosen, Tag: here, Took: 3 * time.Millisecond}, {Target: far, State: redirect.NotAsked},
			}, PullSecrets: []string{"near-corp"}},
			reasons: and(policy.Reason{Code: policy.Mirrored, Message: "redirected to near.corp:5000/hub/library/nginx:1.27@" + here.String()}),
		},
		{
			name: "failover", reason: "the first target is down, and the second serves the digest", answer: gate.Allow,
			redirect: gate.Redirect{Mirror: hub, Target: pin(t, far, here), Attempts: []redirect.Attempt{
				{Target: near, State: redirect.Failed, Err: down, Took: 5 * time.Second}, {Target: far, State: redirect.Chosen},
			}, PullSecrets: []string{"far-corp"}},
			reasons:  and(policy.Reason{Code: policy.Mirrored, Message: "redirected to far.corp/hub/library/nginx:1.27@" + here.String()}),
			warnings: []policy.Reason{{Code: policy.NoPullSecret, Path: hub, Message: "the Secret far-corp is not in the namespace default"}},
		},
		{
			name: "differs", reason: "a mirror that is behind: the image stays, and both digests are reported", answer: gate.Allow,
			redirect: gate.Redirect{Mirror: hub, Attempts: []redirect.Attempt{
				{Target: near, State: redirect.Differs, Tag: there, Took: time.Millisecond}, {Target: far, State: redirect.Missing, Took: time.Millisecond},
			}, Why: "no target serves the digest", Other: there},
			reasons:  nobody,
			warnings: []policy.Reason{{Code: policy.MirrorDiffers, Path: hub, Message: "the tag resolves to another digest at near.corp:5000"}},
		},
		{
			name: "denied", reason: "no target qualifies, and the mapping denies that", answer: gate.Deny,
			redirect: gate.Redirect{Mirror: hub, Attempts: []redirect.Attempt{
				{Target: near, State: redirect.Resting, Err: down}, {Target: far, State: redirect.Missing, Took: time.Millisecond},
			}, Why: "no target serves the digest"},
			reasons: []policy.Reason{{Code: policy.NoMirror, Path: hub, Message: "no target serves the digest, and the mapping denies that"}},
		},
		{
			name: "unproved", reason: "nothing was proved, so no target was asked", answer: gate.Allow,
			redirect: gate.Redirect{Mirror: hub, Why: "no policy asks for proof of the image, and the entry wants it (when: Verified)"},
			reasons:  nobody,
		},
		{name: "copy", reason: "a reference inside a target is judged by its source's name", answer: gate.Allow, copy: "near.corp:5000/hub/library/nginx:1.27"},
	}
}

func TestMirrorGolden(t *testing.T) {
	var logged bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	for _, m := range mirroredCases(t) {
		t.Run(m.name, func(t *testing.T) {
			outcome := m.outcome(t)
			outcomes := []gate.Outcome{outcome}
			golden(t, "mirror/"+m.name+".txt", func(w io.Writer) error {
				return errors.Join(
					report.Text(w, outcomes, report.TextOptions{}),
					report.Text(w, outcomes, report.TextOptions{Verbose: true, Width: 100}),
					report.Tree(w, outcome, report.TreeOptions{}),
				)
			})
			golden(t, "mirror/"+m.name+".json", func(w io.Writer) error { return report.JSON(w, outcomes) })
			report.Log(t.Context(), logger, outcome)
		})
	}
	golden(t, "mirror/log.jsonl", func(w io.Writer) error { _, err := w.Write(logged.Bytes()); return err })
}

// TestMirrorDurations: durations are in a text only on request.
func TestMirrorDurations(t *testing.T) {
	outcome := mirroredCases(t)[1].outcome(t)
	for verbose, want := range map[bool]bool{false: false, true: true} {
		tree := written(t, func(w io.Writer) error { return report.Tree(w, outcome, report.TreeOptions{Verbose: verbose}) })
		if strings.Contains(tree, "5000 ms") != want {
			t.Errorf("verbose %t:\n%s", verbose, tree)
		}
	}
}

package imagevalidating_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// TestNearestAttestorFirst: of the attestors of an expression, the reason of the nearest
// match is reported first, in whatever order they are evaluated.
func TestNearestAttestorFirst(t *testing.T) {
	const wrongKey, noLogEntry = "wrong-key attestors.ours", "no-log-entry attestors.logged"
	h := newEnv(t)
	foreign, bad := h.signed(t, "foreign", h.stranger), h.signed(t, "bad")
	h.attest(t, foreign, h.stranger, "https://example.com/scan/v1", map[string]any{"score": 1})
	logged := func(expression string) string {
		return edit(with("images.containers.all(i, "+expression+")"), "  attestors:\n", "  attestors:\n  - name: logged\n    cosign: {key: {data: 'STRANGER'}}\n")
	}
	for _, c := range []struct {
		reason, expression, image string
		want                      []string
	}{
		{"the nearer one last", "verifyImageSignatures(i, [attestors.ours, attestors.logged]) > 0", foreign.Name, []string{noLogEntry, wrongKey}},
		{"the nearer one first", "verifyImageSignatures(i, [attestors.logged, attestors.ours]) > 0", foreign.Name, []string{noLogEntry, wrongKey}},
		{"one after the other", "verifyImageSignatures(i, [attestors.ours]) > 0 || verifyImageSignatures(i, [attestors.logged]) > 0", foreign.Name, []string{noLogEntry, wrongKey}},
		{"a statement", "verifyAttestationSignatures(i, attestations.scan, [attestors.ours, attestors.logged]) > 0", foreign.Name, []string{noLogEntry, wrongKey}},
		{"a signature is not there, a statement is nearer", "verifyImageSignatures(i, [attestors.notary]) > 0 || verifyAttestationSignatures(i, attestations.scan, [attestors.logged]) > 0", foreign.Name, []string{noLogEntry, "unsigned attestors.notary"}},
		{"equal ones as the expression asks them", "verifyImageSignatures(i, [attestors.notary, attestors.ours]) > 0", bad.Name, []string{"unsigned attestors.notary", "unsigned attestors.ours"}},
		{"the other way round", "verifyImageSignatures(i, [attestors.ours, attestors.notary]) > 0", bad.Name, []string{"unsigned attestors.ours", "unsigned attestors.notary"}},
	} {
		out := h.decide(t, pod(t, c.image), logged(c.expression))
		reasons := out.Verdicts[0].Reasons
		var got []string
		for _, r := range reasons[:len(reasons)-1] {
			got = append(got, string(r.Code)+" "+r.Path)
		}
		if out.Result != gate.Deny || !slices.Equal(got, c.want) || reasons[len(reasons)-1].Code != policy.Denied {
			t.Errorf("%s: %s %q, want %q", c.reason, out.Result, got, c.want)
		}
	}
	out := h.decide(t, pod(t, foreign.Name), logged("verifyImageSignatures(i, [attestors.ours, attestors.theirs, attestors.logged]) > 0"))
	if out.Result != gate.Allow {
		t.Errorf("the attestor that signed is not accepted: %s %v", out.Result, out.Verdicts[0].Reasons)
	}
}

// TestNoMissesInDoubt: an indeterminate result does not report signatures as missing.
func TestNoMissesInDoubt(t *testing.T) {
	text := expressed("images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0 || getImageData(i).digest == '')")
	pinned := testkit.Must(image.MustParse(app).Pin(image.Descriptor{Digest: testkit.Must(image.ParseDigest("sha256:" + strings.Repeat("a", 64)))(t)}))(t)
	down := &image.Error{Kind: image.Unavailable, Op: "get", On: "a", Err: errors.New("down")}
	for _, c := range []struct {
		reason string
		err    error
		want   policy.Result
		codes  []policy.Code
	}{
		{"it is not signed, and has a digest", nil, policy.Fail, []policy.Code{policy.Unsigned, policy.Denied}},
		{"it is not signed, and the rest is indeterminate", down, policy.Indeterminate, []policy.Code{policy.Unavailable}},
	} {
		d := judged(t, text, nil, map[string]any{}, containers(app), func(_ int, g *policy.Given) { g.Pinned, g.DataErr = pinned, c.err }).Decisions[0]
		var got []policy.Code
		for _, r := range d.Reasons {
			got = append(got, r.Code)
		}
		if d.Result != c.want || !slices.Equal(got, c.codes) {
			t.Errorf("%s: %s %q, want %q", c.reason, d.Result, got, c.codes)
		}
	}
}

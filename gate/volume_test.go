package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestRejectedDigest: a registry rejects a digest that a pushed referrer names. That is malformed
// evidence: it admits no unsigned image by failurePolicy Ignore, and blocks no right one.
func TestRejectedDigest(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	junk := []byte(`{"junk":1}`)
	rejects := registrytest.Fault{Kind: registrytest.Blob, Reference: registrytest.DigestOf(junk), Do: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"errors":[{"code":"DIGEST_INVALID"}]}`)
		})
	}}
	unsigned, signed := h.Build("app", "unsigned", "unsigned"), h.Build("app", "signed", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	scan(t, h, signed, "clean", 2, true)
	for _, predicateType := range []string{verifytest.CosignSignPredicateType, scanType} {
		must(0, h.PutBundle(unsigned, junk, predicateType))(t)
		must(0, h.PutBundle(signed, junk, predicateType))(t)
	}
	h.Registry.SetFaults(rejects)
	for reason, rule := range map[string]policy.Rule{"a signature": signedBy(h.key), "the latest statement": scanned(h, false)} {
		for _, failOpen := range []bool{true, false} {
			g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{FailOpen: failOpen}, Rules: []policy.Rule{rule}})
			if out := decide(t, g, unsigned.Name); out.Result != gate.Deny {
				t.Errorf("%s, Ignore %t, unsigned: %s %+v", reason, failOpen, out.Result, out.Verdicts[0].Reasons)
			}
			if out := decide(t, g, signed.Name); out.Result != gate.Allow {
				t.Errorf("%s, Ignore %t, signed: %s %+v", reason, failOpen, out.Result, out.Verdicts[0].Reasons)
			}
		}
	}
}

// TestVolumeIsNoSilence: a search of which the registry answered many requests until the request's time
// ended reached a bound, which failurePolicy Ignore does not admit. A registry that answers few
// requests, or none, is unresponsive.
func TestVolumeIsNoSilence(t *testing.T) {
	for answers, want := range map[int64]struct {
		result gate.Result
		code   policy.Code
	}{
		1:                        {gate.Allow, policy.TimedOut},
		deadline.MaxAnswered / 2: {gate.Allow, policy.TimedOut},
		2 * deadline.MaxAnswered: {gate.Error, policy.TooMuch},
	} {
		// An env of its own: the search goes on after the request.
		h := newEnv(t, registrytest.Options{})
		app := h.Build("app", "v1", "unsigned")
		for i := range 2 * deadline.MaxAnswered {
			must(0, h.PutBundle(app, fmt.Appendf(nil, `{"junk":%d}`, i), verifytest.CosignSignPredicateType))(t)
		}
		ignore := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(h.key)}}
		ctx, end := context.WithCancel(t.Context())
		var begun atomic.Int64
		h.Registry.SetFaults(registrytest.Fault{Do: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if begun.Add(1) > answers {
					end() // the time of the request
					<-q.Context().Done()
					return
				}
				next.ServeHTTP(w, q)
			})
		}})
		out := h.gateWith(t, ignore).Decide(ctx, must(gate.ForImage(app.ByDigest(), "default"))(t))
		end()
		reasons := slices.Concat(out.Verdicts[0].Reasons, out.Verdicts[0].Warnings)
		if out.Result != want.result || !slices.ContainsFunc(reasons, func(r policy.Reason) bool { return r.Code == want.code }) {
			t.Errorf("after %d answers: %s, want %s by %s: %+v", answers, out.Result, want.result, want.code, reasons)
		}
	}
}

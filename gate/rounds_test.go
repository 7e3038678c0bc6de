package gate_test

import (
	"net/http"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// coldRounds are first verifications, by the image's evidence. The rounds are those of both kinds
// of registries, with the referrers API and without it.
var coldRounds = []struct {
	reason   string
	sign     func(*env, gatetest.Image) error
	rule     func(*env) policy.Rule
	byDigest bool
	answer   gate.Result
	rounds   int
	requests [2]int // with the API, and without it
	pulls    [2]int // manifest GETs of the image itself would come on top
}{
	{"unsigned by tag: tag, lookups", unsigned, byTheKey, false, gate.Deny, 2, [2]int{4, 4}, [2]int{0, 0}},
	{"unsigned by digest: lookups, whether it is there", unsigned, byTheKey, true, gate.Deny, 2, [2]int{4, 4}, [2]int{0, 0}},
	{"legacy key by tag: tag, signature manifest, payload", legacy, byTheKey, false, gate.Allow, 3, [2]int{5, 5}, [2]int{1, 1}},
	{"legacy key by digest: signature manifest, payload", legacy, byTheKey, true, gate.Allow, 2, [2]int{4, 4}, [2]int{1, 1}},
	{"bundle by tag: tag, referrers, manifest, bundle", bundled, byTheKey, false, gate.Allow, 4, [2]int{6, 6}, [2]int{1, 2}},
	{"bundle by digest: referrers, manifest, bundle", bundled, byTheKey, true, gate.Allow, 3, [2]int{5, 5}, [2]int{1, 2}},
	{"both by tag: the key's rounds are beside the bundle's", both, byTheKey, false, gate.Allow, 4, [2]int{7, 7}, [2]int{2, 3}},
	{"bundle of another key by tag: as many, and denied", strange, byTheKey, false, gate.Deny, 4, [2]int{6, 6}, [2]int{1, 2}},
	{"notation by tag: tag, referrers, manifest, envelope", notarised, byTheNotary, false, gate.Allow, 4, [2]int{5, 5}, [2]int{1, 2}},
	{"notation by digest: referrers beside the descriptor, manifest, envelope", notarised, byTheNotary, true, gate.Allow, 3, [2]int{5, 5}, [2]int{1, 2}},
}

// TestSerialRoundsOfAColdProof counts the rounds and requests of the first image of a host,
// and of a second one of the repository: one request less, since it is known by then whether
// the host has the API.
func TestSerialRoundsOfAColdProof(t *testing.T) {
	for i, noAPI := range []bool{false, true} {
		for _, c := range coldRounds {
			t.Run(map[bool]string{false: "with the API/", true: "without the API/"}[noAPI]+c.reason, func(t *testing.T) {
				h := newEnv(t, registrytest.Options{Delay: settleTime, NoReferrers: noAPI})
				for n, tag := range []string{"v1", "v2"} {
					image := h.Build("app", tag, c.reason+tag)
					must(0, c.sign(h, image))(t)
					name := image.Name
					if c.byDigest {
						name = image.ByDigest()
					}
					h.Registry.Reset()
					outcome := decide(t, h.gate(t, c.rule(h)), name)
					if outcome.Result != c.answer {
						t.Fatalf("%s: %s, want %s: %+v", tag, outcome.Result, c.answer, outcome.Verdicts)
					}
					wantCost(t, h, outcome, c.rounds, c.requests[i]-n, c.pulls[i])
				}
			})
		}
	}
}

func wantCost(t *testing.T, h *env, outcome gate.Outcome, rounds, wanted, pulls int) {
	t.Helper()
	if got := h.Registry.Rounds(); got != rounds {
		t.Errorf("%d serial rounds, want %d:\n%s", got, rounds, requests(h))
	}
	if got := len(h.Registry.Requests()); got != wanted {
		t.Errorf("%d requests, want %d:\n%s", got, wanted, requests(h))
	}
	if got := h.Registry.Pulls(); got != pulls {
		t.Errorf("%d counted pulls, want %d:\n%s", got, pulls, requests(h))
	}
	if got := h.Registry.Count("", registrytest.Ping); got > 0 {
		t.Errorf("%d pings, none is needed", got)
	}
	if cost := outcome.Cost; int(cost.Requests) != len(h.Registry.Requests()) || int(cost.CountedPulls) != h.Registry.Pulls() {
		t.Errorf("the verdict has %+v, the registry saw %d requests and %d pulls", cost, len(h.Registry.Requests()), h.Registry.Pulls())
	}
}

// TestTheReferrersTagCountsOnlyWithoutTheAPI: a signature at the referrers tag admits where
// the registry lacks the API, and nowhere else.
func TestTheReferrersTagCountsOnlyWithoutTheAPI(t *testing.T) {
	for _, row := range []struct {
		reason string
		api    registrytest.Action // nil: the registry lacks the API
		want   gate.Result
	}{
		{"no API: the tag is the list", nil, gate.Allow},
		{"an empty list of the API: unsigned", registrytest.ForgeReferrers(), gate.Deny},
		{"the API fails: could not be verified", registrytest.Status(500), gate.Error},
		{"the API refuses: could not be verified", registrytest.Status(403), gate.Error},
		{"the API ends in the middle: could not be verified", halfAList, gate.Error},
	} {
		h := newEnv(t, registrytest.Options{NoReferrers: true})
		image := h.Build("app", "v1", "app")
		must(0, bundled(h, image))(t)
		if row.api != nil {
			h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: row.api})
		}
		for _, name := range []string{image.Name, image.ByDigest()} {
			if got := decide(t, h.gate(t, byTheKey(h)), name); got.Result != row.want {
				t.Errorf("%s: %s, want %s: %+v", row.reason, got.Result, row.want, got.Reasons)
			}
		}
	}
}

// halfAList is the first half of a list.
func halfAList(next http.Handler) http.Handler {
	return registrytest.Half()(registrytest.ForgeReferrers()(next))
}

func unsigned(*env, gatetest.Image) error { return nil }

func both(h *env, image gatetest.Image) error {
	if err := legacy(h, image); err != nil {
		return err
	}
	return bundled(h, image)
}

func strange(h *env, image gatetest.Image) error {
	return h.SignBundle(image, byKey(h.stranger), nil)
}

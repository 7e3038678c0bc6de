package imagepolicy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// pinned is a reference with a digest of its own.
func pinned(t testing.TB, text string) image.Pinned {
	t.Helper()
	return testkit.Must(image.MustParse(text).Pin(image.Descriptor{Digest: image.DigestOf([]byte(text))}))(t)
}

// verdicts makes one of each kind.
func verdicts(t testing.TB) gate.Outcome {
	signed := &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}
	decided := func(text string, answer gate.Result, reasons ...policy.Reason) gate.Verdict {
		return gate.Verdict{
			Image: policy.Image{Role: "container", Ref: image.MustParse(text)}, Result: answer, Reasons: reasons,
			Decisions: []policy.Decision{{Check: &policy.Check{Policy: signed, Rule: "by-key"}, Result: policy.Fail, Reasons: reasons}},
		}
	}
	missing := policy.Reason{Code: policy.MissingDigest, Message: "missing digest", Hint: "write it"}
	tag := decided("registry.example/tag:1", gate.Deny, missing)
	tag.Pinned = pinned(t, "registry.example/tag:1")
	copied := decided("registry.example/copied:1", gate.Deny, missing)
	copied.Pinned = pinned(t, "registry.example/copied:1")
	copied.Redirect = &gate.Redirect{Mirror: "RegistryMirror/hub[0]", Target: pinned(t, "mirror.example/copied:1")}
	both := decided("registry.example/both:1", gate.Deny, policy.Reason{Code: policy.Unsigned, Message: "no signature found"}, missing)
	both.Pinned = pinned(t, "registry.example/both:1")
	o := gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{
		decided("registry.example/good:1", gate.Allow), both,
		decided("registry.example/wrong:1", gate.Deny, policy.Reason{Code: "wrong-key", Message: "signed by another key", Expected: "key a", Found: "key b"}),
		decided("registry.example/away:1", gate.Error, policy.Reason{Code: policy.Unavailable, Message: "dial tcp: refused\nby the host"}),
		tag, copied,
	}}
	for i := range o.Verdicts {
		o.Verdicts[i].Image.Container = strconv.Itoa(i)
	}
	return o
}

func TestGolden(t *testing.T) {
	whole := gate.Outcome{Result: gate.Error, Reasons: []policy.Reason{{Code: policy.Internal, Message: "panic: x"}}}
	for name, o := range map[string]gate.Outcome{"images.txt": verdicts(t), "whole.txt": whole} {
		status := send(t, endpoint(t, decide(func(context.Context, gate.Request) gate.Outcome { return o })), "shop", "a")
		golden(t, name, status.Reason+"\n")
	}
	w := post(endpoint(t, decide(func(context.Context, gate.Request) gate.Outcome { return verdicts(t) })), review(t, "shop", "a"))
	golden(t, "denied.json", w.Body.String()+"\n")
	w = post(endpoint(t, decide(allow)), review(t, "shop", "a"))
	golden(t, "allowed.json", w.Body.String()+"\n")
}

// TestBounded holds that a denial of many images stays readable, and counts what
// is left out, in the order of the review.
func TestBounded(t *testing.T) {
	o := gate.Outcome{Result: gate.Deny}
	for i := range 200 {
		o.Verdicts = append(o.Verdicts, gate.Verdict{
			Image:  policy.Image{Container: strconv.Itoa(199 - i), Ref: image.MustParse(fmt.Sprintf("registry.example/%d:1", 199-i))},
			Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: strings.Repeat("x", 10_000)}},
		})
	}
	reason := send(t, endpoint(t, decide(func(context.Context, gate.Request) gate.Outcome { return o })), "shop", "a").Reason
	if len(reason) > 4<<10 || !strings.Contains(reason, "more images") || !strings.HasPrefix(reason, "200 of 200 images denied: registry.example/0:1 and 199 more\n  registry.example/0:1: denied\n") {
		t.Errorf("%d bytes:\n%.300s", len(reason), reason)
	}
	if reason := send(t, endpoint(t, decide(func(context.Context, gate.Request) gate.Outcome {
		return gate.Outcome{Result: "perhaps"}
	})), "shop", "a"); reason.Allowed {
		t.Error("an unknown answer admits")
	}
}

// TestNoSecrets holds that an error which only the log may see stays there.
func TestNoSecrets(t *testing.T) {
	config := configOf(decide(func(context.Context, gate.Request) gate.Outcome { panic("password") }))
	config.Namespaces = recorded{}
	handler := endpointWith(t, config)
	if reason := send(t, handler, "shop", "a").Reason; strings.Contains(reason, "password") {
		t.Error(reason)
	}
}

type recorded struct{}

func (recorded) Labels(context.Context, string) (map[string]string, error) {
	return nil, errors.New("password")
}

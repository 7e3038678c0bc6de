package imagepolicy_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/imagepolicy"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestRealGate is what a pod's images come to, by policies, a registry and
// signatures that are real.
func TestRealGate(t *testing.T) {
	h := endpointtest.NewEnv(t)
	good, other := testkit.Must(h.Signed("good"))(t), testkit.Must(h.Signed("other"))(t)
	bad := h.Build("shop/bad", "1", "bad")
	elsewhere := h.Build("tools/x", "1", "x")
	noDigest := []string{"imageReferences", "mutateDigest: false\n      verifyDigest: false\n      imageReferences"}
	for _, c := range []struct {
		images  []string
		changes []string
		allowed bool
		says    []string
		reason  string
	}{
		{[]string{good.ByDigest()}, nil, true, nil, "signed, by digest"},
		{[]string{bad.ByDigest()}, nil, false, []string{"1 of 1 image denied", bad.ByDigest() + ": denied", "[unsigned]", "ClusterPolicy/signed, rule by-key", "next: "}, "not signed"},
		{[]string{good.Name}, nil, false, []string{"[missing-digest]", "use " + good.Name + "@" + good.Manifest.Digest}, "signed, by a tag that is not pinned"},
		{[]string{good.Name}, noDigest, true, nil, "signed, by a tag that the policy leaves alone"},
		{[]string{bad.Name}, noDigest, false, []string{"[unsigned]"}, "not signed, by a tag that the policy leaves alone"},
		{[]string{good.ByDigest(), other.ByDigest()}, nil, true, nil, "all signed"},
		{[]string{good.ByDigest(), bad.ByDigest(), good.Name, "::"}, nil, false, []string{
			"[malformed-reference]", bad.ByDigest() + ": denied", "use " + good.Name + "@" + good.Manifest.Digest,
		}, "one denial names all that is wrong"},
		{[]string{elsewhere.Name}, nil, true, nil, "no policy matches the image"},
		{[]string{h.Registry.Host() + "/shop/gone:1"}, nil, false, []string{"could not be verified", "[image-not-found]"}, "an image that is not there"},
		{[]string{good.ByDigest()}, []string{"kinds: [Pod]", "kinds: [Pod], selector: {matchLabels: {a: b}}"}, false, []string{"could not be verified", "the object's labels"}, "a rule that asks for labels"},
		{[]string{elsewhere.Name}, []string{"kinds: [Pod]", "kinds: [Pod], selector: {matchLabels: {a: b}}"}, true, nil, "the same rule, of other images"},
		{[]string{good.ByDigest()}, []string{"kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {team: a}}"}, true, nil, "a rule for the namespace's labels"},
		{[]string{bad.ByDigest()}, []string{"kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {team: a}}"}, false, []string{"[unsigned]"}, "not signed, by the same rule"},
		{[]string{bad.ByDigest()}, []string{"kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {team: b}}"}, true, nil, "a rule for the labels of other namespaces"},
		{[]string{bad.ByDigest()}, []string{"kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"}, false, []string{"[unsigned]"}, "a rule for the namespace by its name's label"},
		{[]string{bad.ByDigest()}, []string{"validationFailureAction: Enforce", "validationFailureAction: Audit"}, true, nil, "a policy that audits"},
		{[]string{good.Name}, []string{"validationFailureAction: Enforce", "validationFailureAction: Audit"}, true, nil, "a policy that audits, and would have the image pinned"},
	} {
		kept := &recorder{}
		status := send(t, endpoint(t, endpointtest.Gate(t, h, c.changes...), withRecorder(kept)), "shop", c.images...)
		if status.Allowed != c.allowed {
			t.Errorf("%s: allowed %t: %s", c.reason, status.Allowed, status.Reason)
		}
		for _, text := range c.says {
			if !strings.Contains(status.Reason, text) {
				t.Errorf("%s: %q is not in\n%s", c.reason, text, status.Reason)
			}
		}
		recorded := kept.Last(t)
		if recorded.Cause != imagepolicy.Decided || recorded.Allowed != c.allowed || recorded.Outcome.Result.Admits() != c.allowed || recorded.Namespace != "shop" || len(recorded.Images) != len(c.images) {
			t.Errorf("%s: recorded %+v", c.reason, recorded)
		}
	}
}

// TestUnknownNamespace holds that labels which could not be read are no match and
// no miss.
func TestUnknownNamespace(t *testing.T) {
	h := endpointtest.NewEnv(t)
	good := testkit.Must(h.Signed("good"))(t)
	kept := &recorder{}
	byLabel := endpointtest.Gate(t, h, "kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {team: b}}")
	status := send(t, endpoint(t, byLabel, withRecorder(kept)), "gone", good.ByDigest())
	if status.Allowed || !strings.Contains(status.Reason, "labels of the object's namespace") || kept.Last(t).Err == nil {
		t.Errorf("%+v, %v", status, kept.Last(t).Err)
	}
	if status := send(t, endpoint(t, endpointtest.Gate(t, h)), "gone", good.ByDigest()); !status.Allowed {
		t.Errorf("no rule needs labels: %s", status.Reason)
	}
}

func TestAudit(t *testing.T) {
	h := endpointtest.NewEnv(t)
	good, bad := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad")
	g := endpointtest.Gate(t, h)
	status := send(t, endpoint(t, g), "shop", good.ByDigest(), bad.Name)
	if status.Allowed || status.AuditAnnotations["result"] != "deny" || status.AuditAnnotations["codes"] != "unsigned" ||
		!strings.HasSuffix(status.AuditAnnotations["digest-0"], "@"+good.Manifest.Digest) || !strings.HasSuffix(status.AuditAnnotations["digest-1"], "@"+bad.Manifest.Digest) {
		t.Errorf("%v", status.AuditAnnotations)
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = good.ByDigest()
	}
	status = send(t, endpoint(t, g), "shop", many...)
	if !status.Allowed || len(status.AuditAnnotations) != 33 {
		t.Errorf("%t with %d annotations", status.Allowed, len(status.AuditAnnotations))
	}
}

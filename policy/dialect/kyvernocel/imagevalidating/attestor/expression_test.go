package attestor_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestExpressions: the value of an expression counts like a literal value, and a value that
// cannot be used is an error without authorities.
func TestExpressions(t *testing.T) {
	h, l := newTown(), newLanguage(t)
	ann, eve := signed{claim: verifytest.Claim{Signer: h.ann}}, signed{claim: verifytest.Claim{Signer: h.eve}}
	flow := signed{claim: verifytest.Claim{Signer: h.workflow}}
	key := "cosign: {key: {expression: object.says}}"
	who := "cosign: {keyless: {identities: [{issuer: '" + issuer + "', subjectExpression: %q}]}}"
	chain := "cosign: {certificate: {cert: {expression: object.says}, certChain: {expression: object.chain}}}"
	rooted := "cosign: {key: {data: " + q(h.ann.PublicPEM()) + "}, trustedRoot: {expression: object.says}}"
	const at = "spec.attestors[0].cosign."
	for _, c := range []struct {
		text   string
		says   any
		made   signed
		code   verify.Code
		wrong  string // the error, if there are no authorities
		reason string
	}{
		{key, string(h.ann.PublicPEM()), ann, "", "", "a key"},
		{key, string(h.ann.PublicPEM()), eve, verify.WrongKey, "", "another key signed"},
		{key, string(h.eve.PublicPEM()) + string(h.ann.PublicPEM()), ann, "", "", "two keys"},
		{key, "", ann, "", at + "key.expression: yields an empty text", "an empty key"},
		{key, "text", ann, "", at + "key.expression: want 1 to 32 PEM blocks", "no PEM"},
		{key, string(h.ann.PublicPEM()) + "more", ann, "", at + "key.expression: want PEM blocks", "PEM and more"},
		{key, int64(1), ann, "", at + "key.expression: ", "a number"},
		{key, "k8s://a/b", ann, "", at + "key.expression: want 1 to 32", "a Secret that an object chose"},
		{key, strings.Repeat("a", 1<<20+1), ann, "", at + "key.expression: yields 1048577 bytes", "a long text"},
		{"cosign: {key: {expression: object.nothing}}", "", ann, "", at + "key.expression: ", "a field that is not there"},
		{fmt.Sprintf(who, `"https://git.example/" + object.says + "/.*"`), "org/app", flow, "", "", "a subject"},
		{fmt.Sprintf(who, `"https://git.example/" + object.says + "/.*"`), "org/other", flow, verify.WrongIdentity, "", "another subject"},
		{fmt.Sprintf(who, `"https://git.example/" + image.split("/")[1] + "/" + image.split("/")[2] + "/.*"`), "", flow, "", "", "a subject by the image"},
		{fmt.Sprintf(who, `"git.example/" + object.says`), "org/app", flow, verify.WrongIdentity, "", "a part of a subject"},
		{fmt.Sprintf(who, `object.says`), "a)|(.*", flow, "", at + "keyless.identities[0].subjectExpression: ", "a pattern that escapes its anchors"},
		{fmt.Sprintf(who, `object.says`), strings.Repeat("a", 5000), flow, "", at + "keyless.identities[0].subjectExpression: the expression has 5000 bytes", "a long pattern"},
		{fmt.Sprintf(who, `object.says`), "", flow, "", at + "keyless.identities[0].subjectExpression: yields an empty text", "no subject"},
		{chain, string(h.workflow.CertificatePEM()), flow, "", "", "a certificate"},
		{chain, string(h.other.CertificatePEM()), flow, verify.WrongIdentity, "", "another certificate"},
		{chain, "text", flow, "", at + "certificate.cert.expression: ", "no certificate"},
		{rooted, string(h.ours.TrustedRoot()), ann, "", "", "a trusted root"},
		{rooted, string(h.theirs.TrustedRoot()), ann, verify.BadLogEntry, "", "another trusted root"},
		{rooted, "{}", ann, "", at + "trustedRoot.expression: want a trusted_root.json", "no trusted root"},
		{"notary: {certs: {expression: object.says}}", string(h.notary.RootPEM()), signed{notary: h.notary}, "", "", "a notary"},
		{"notary: {certs: {expression: object.says}}", string(h.impostor.RootPEM()), signed{notary: h.notary}, verify.UntrustedChain, "", "another notary"},
		{"notary: {certs: {expression: object.says}}", "", signed{notary: h.notary}, "", "notary.certs.expression: yields an empty text", "no certificates"},
	} {
		a := compile(t, c.text, l.options())
		object := map[string]any{"says": c.says, "chain": string(h.ours.CA.ChainPEM())}
		authorities, err := a.Authorities(t.Context(), l.about(object, "registry.example/org/app"))
		if c.wrong != "" {
			if !says(err, c.wrong) || authorities != nil {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		for _, e := range h.evidence(c.made) {
			if err := h.prove(t.Context(), authorities, e); codeOf(err) != c.code || err != nil && c.code == "" {
				t.Errorf("%s (%s): got %v, want %q", c.reason, e.Format, err, c.code)
			}
		}
	}
}

// TestKMSByExpression: an expression may yield the address of a key.
func TestKMSByExpression(t *testing.T) {
	l := newLanguage(t)
	a := compile(t, "cosign: {key: {expression: '\"hashivault://\" + object.team'}}", l.options())
	authorities, err := a.Authorities(t.Context(), l.about(map[string]any{"team": "shop"}, ""))
	if err != nil || len(authorities) != 1 || authorities[0].Key.Ref != "hashivault://shop" {
		t.Errorf("got %v, %v", authorities, err)
	}
}

// TestSamePointers: equal values are the same authorities, so that each is verified once.
func TestSamePointers(t *testing.T) {
	l := newLanguage(t)
	static := compile(t, fill("cosign: {key: {data: $KEY}}"), attestor.Options{})
	first, err := static.Authorities(t.Context(), attestor.Activations{})
	if err != nil || !static.Static() || static.PerImage() {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = static.Authorities(ctx, attestor.Activations{}) }); n != 0 {
		t.Errorf("an attestor without expressions costs %v allocations", n)
	}
	if again, _ := static.Authorities(t.Context(), attestor.Activations{}); again[0] != first[0] {
		t.Error("an attestor without expressions changes")
	}

	computed := compile(t, "cosign: {keyless: {identities: [{issuer: a, subjectExpression: image}]}}", l.options())
	if computed.Static() || !computed.PerImage() {
		t.Error("an attestor with an expression over images does not say so")
	}
	ask := func(image string) *verify.Authority {
		list, err := computed.Authorities(ctx, l.about(nil, image))
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	a, b := ask("a"), ask("b")
	if a == b || ask("a") != a || ask("b") != b {
		t.Error("equal values are not the same authority")
	}
	for i := range 1000 { // more than are remembered
		ask(fmt.Sprint("image", i))
	}
	if late := ask("a"); late.Keyless.Identities[0].Subject.String() != "/a/" {
		t.Errorf("after many others it is %s", late.Keyless)
	}

	var group sync.WaitGroup
	seen := make([]*verify.Authority, 8)
	for i := range seen {
		group.Go(func() { seen[i] = ask("together") })
	}
	group.Wait()
	for _, one := range seen {
		if one != seen[0] {
			t.Error("asked at the same time, equal values are not the same authority")
		}
	}
}

// TestNothingToEvaluateWith: an attestor that cannot be evaluated is an error.
func TestNothingToEvaluateWith(t *testing.T) {
	l := newLanguage(t)
	ended, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx          context.Context
		text         string
		in           attestor.Activations
		want, reason string
	}{
		{t.Context(), "cosign: {key: {expression: object.a}}", attestor.Activations{}, "there is nothing to evaluate", "no activation"},
		{
			t.Context(), "cosign: {keyless: {identities: [{issuer: a, subjectExpression: image}]}}",
			attestor.Activations{Object: l.about(nil, "").Object}, "there is nothing to evaluate", "no image",
		},
		{ended, "cosign: {key: {expression: object.a}}", l.about(map[string]any{"a": "b"}, ""), "context canceled", "no time"},
	} {
		if list, err := compile(t, c.text, l.options()).Authorities(c.ctx, c.in); !says(err, c.want) || list != nil {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestSource(t *testing.T) {
	a := compile(t, fill("cosign: {key: {data: $KEY}, source: {repository: registry.example/signatures, tagPrefix: a-, PullSecrets: [{name: x}, {name: z}]}}"), attestor.Options{})
	if len(a.Sources) != 1 || a.Sources[0].Repository.String() != "registry.example/signatures" || a.Sources[0].TagPrefix != "a-" {
		t.Errorf("sources %v", a.Sources)
	}
	if list, err := a.Secrets("shop"); err != nil || strings.Join(list, " ") != "shop/x shop/z" {
		t.Errorf("secrets %v, %v", list, err)
	}
	if list, err := a.Secrets(""); err == nil || list != nil {
		t.Error("secrets of an unknown namespace")
	}
	only := compile(t, fill("cosign: {key: {data: $KEY}, source: {PullSecrets: [{name: x}]}}"), attestor.Options{})
	if only.Sources != nil {
		t.Errorf("pull secrets alone are no other place: %v", only.Sources)
	}
	plain := compile(t, fill("cosign: {key: {data: $KEY}}"), attestor.Options{})
	if list, err := plain.Secrets(""); err != nil || list != nil {
		t.Errorf("secrets out of nothing: %v, %v", list, err)
	}
}

// TestDocumentIsNotKept: later changes of the caller's document do not change attestors.
func TestDocumentIsNotKept(t *testing.T) {
	l := newLanguage(t)
	doc := parse(t, "cosign: {keyless: {identities: [{issuer: a, subjectExpression: object.who}], additionalExtensions: {issuer: a}}, annotations: {a: b}}")
	list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{doc}, l.options())
	if err != nil {
		t.Fatal(err)
	}
	doc.Cosign.Annotations["a"] = "c"
	doc.Cosign.Keyless.Identities[0].Issuer = "evil"
	authorities, err := list[0].Authorities(t.Context(), l.about(map[string]any{"who": "b"}, ""))
	if err != nil || authorities[0].Annotations["a"] != "b" || !authorities[0].Keyless.Identities[0].Issuer.Match("a") {
		t.Errorf("got %+v, %v", authorities[0], err)
	}
}

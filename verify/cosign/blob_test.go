package cosign_test

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestVerifyBlob: a detached signature is verified by the terms of any other, over the content itself.
func TestVerifyBlob(t *testing.T) {
	l := newLab(t)
	content, otherContent := []byte("kind: ConfigMap\n"), []byte("kind: Secret\n")
	p256, stranger := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})), verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	release := l.keyless(t, nil)
	fork := l.keyless(t, func(i *verifytest.Identity) { i.URI = "https://git.example/fork" })
	for _, c := range []struct {
		reason    string
		claim     verifytest.Claim
		content   []byte
		change    func(*cosign.Detached)
		authority verify.Authority
		want      verify.Code
	}{
		{"a key", verifytest.Claim{Signer: p256, NoLog: true}, content, nil, byKey(p256, noLog), ""},
		{"a key with an entry", verifytest.Claim{Signer: p256}, content, nil, byKey(p256, nil), ""},
		{"a key without the entry that is asked for", verifytest.Claim{Signer: p256, NoLog: true}, content, nil, byKey(p256, nil), verify.NoLogEntry},
		{"an entry of another signature", verifytest.Claim{Signer: p256, Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, content, nil, byKey(p256, nil), verify.BadLogEntry},
		{"an entry of a log that is not trusted", verifytest.Claim{Signer: p256, Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, content, nil, byKey(p256, nil), verify.BadLogEntry},
		{"another key", verifytest.Claim{Signer: stranger, NoLog: true}, content, nil, byKey(p256, noLog), verify.WrongKey},
		{"another content", verifytest.Claim{Signer: p256, NoLog: true}, otherContent, nil, byKey(p256, noLog), verify.WrongKey},
		{"another content with an entry", verifytest.Claim{Signer: p256}, otherContent, nil, byKey(p256, nil), verify.BadSignature},
		{"an identity", verifytest.Claim{Signer: release}, content, nil, keyless(nil), ""},
		{"another identity", verifytest.Claim{Signer: fork}, content, nil, keyless(nil), verify.WrongIdentity},
		{"an identity without an entry", verifytest.Claim{Signer: release, NoLog: true}, content, nil, keyless(nil), verify.NoLogEntry},
		{"another content of an identity", verifytest.Claim{Signer: release}, otherContent, nil, keyless(nil), verify.BadSignature},
		{"the certificate of another signer", verifytest.Claim{Signer: fork, Shown: release}, content, nil, keyless(nil), verify.BadSignature},
		{"no certificate", verifytest.Claim{Signer: release}, content, func(d *cosign.Detached) { d.Certificate = "" }, keyless(nil), verify.WrongIdentity},
		{"no base64", verifytest.Claim{Signer: p256, NoLog: true}, content, func(d *cosign.Detached) { d.Signature = "?" }, byKey(p256, noLog), verify.Malformed},
		{"no signature", verifytest.Claim{Signer: p256, NoLog: true}, content, func(d *cosign.Detached) { d.Signature = "" }, byKey(p256, noLog), verify.Malformed},
		{"no entry", verifytest.Claim{Signer: p256}, content, func(d *cosign.Detached) { d.Entry = "{}" }, byKey(p256, nil), verify.Malformed},
		{"no PEM", verifytest.Claim{Signer: p256, NoLog: true}, content, func(d *cosign.Detached) { d.Certificate = "x" }, byKey(p256, noLog), verify.Malformed},
		{"an annotation that no content has", verifytest.Claim{Signer: p256, NoLog: true}, content, nil, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Annotations = true, map[string]string{"a": "b"} }), verify.WrongAnnotation},
		{"an authority of another format", verifytest.Claim{Signer: p256, NoLog: true}, content, nil, verify.Authority{Notation: &verify.Notation{CA: []byte("x")}}, verify.WrongFormat},
		{"more than the bound", verifytest.Claim{Signer: p256, NoLog: true}, make([]byte, cosign.MaxPayload+1), nil, byKey(p256, noLog), verify.Malformed},
	} {
		c.claim.Artifact = content
		layer, err := l.own.Layer(c.claim)
		if err != nil {
			t.Fatal(err)
		}
		detached := cosign.Detached{Signature: layer.Annotations[signatureAnnotation], Certificate: layer.Annotations[certificateAnnotation], Entry: layer.Annotations[entryAnnotation]}
		if c.change != nil {
			c.change(&detached)
		}
		fact, err := l.verifier.VerifyBlob(t.Context(), cosign.NewBlob(c.content, detached), c.authority)
		rejection, rejected := errors.AsType[*verify.Rejection](err)
		switch {
		case c.want == "" && (err != nil || fact.Subject != image.DigestOf(content) || fact.Signer.String() == ""):
			t.Errorf("%s: %+v, %v", c.reason, fact, err)
		case c.want != "" && (!rejected || rejection.Code != c.want || rejection.Authority != c.authority.Name):
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
	if _, err := l.verifier.VerifyBlob(t.Context(), cosign.NewBlob(nil, cosign.Detached{}), byKey(p256, noLog)); err == nil {
		t.Error("an empty content")
	}
}

// TestVerifyBlobTwice: what one authority rejects, another may verify, by the same blob.
func TestVerifyBlobTwice(t *testing.T) {
	l := newLab(t)
	p256, stranger := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})), verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	content := []byte("kind: ConfigMap\n")
	layer := verifytest.Must(l.own.Layer(verifytest.Claim{Signer: p256, NoLog: true, Artifact: content}))
	blob := cosign.NewBlob(content, cosign.Detached{Signature: layer.Annotations[signatureAnnotation]})
	for range 2 {
		if _, err := l.verifier.VerifyBlob(t.Context(), blob, byKey(stranger, noLog)); err == nil {
			t.Error("another key verifies")
		}
		if _, err := l.verifier.VerifyBlob(t.Context(), blob, byKey(p256, noLog)); err != nil {
			t.Error(err)
		}
	}
	broken := cosign.NewBlob(content, cosign.Detached{Signature: "?"})
	for range 2 {
		if _, err := l.verifier.VerifyBlob(t.Context(), broken, byKey(p256, noLog)); err == nil {
			t.Error("a signature that cannot be read verifies")
		}
	}
}

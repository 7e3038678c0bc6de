package attestor_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestTUF: an attestor with a trusted root in a TUF repository cannot be evaluated before
// that root is read.
func TestTUF(t *testing.T) {
	h := newTown()
	first := `{"signed":{"_type":"root"}}`
	text := "cosign: {key: {data: " + q(h.ann.PublicPEM()) + "}, tuf: {mirror: 'https://tuf.example/', root: {data: " + base64.StdEncoding.EncodeToString([]byte(first)) + "}}}"
	repositories := attestor.NewRepositories()
	a := compile(t, text, attestor.Options{Roots: repositories})
	select {
	case <-repositories.New():
	default:
		t.Error("no notice of a new repository")
	}
	wanted := repositories.Wanted()
	if len(wanted) != 1 || wanted[0].Mirror != "https://tuf.example" || string(wanted[0].Root) != first || a.TUF.Key != wanted[0].Key {
		t.Fatalf("wanted %+v", wanted)
	}
	ask := func() ([]*verify.Authority, error) { return a.Authorities(t.Context(), attestor.Activations{}) }
	if list, err := ask(); !says(err, "spec.attestors[0].cosign.tuf: the trusted root is not known yet: the TUF repository https://tuf.example") || list != nil {
		t.Errorf("before it was read: %v", err)
	}
	repositories.Fail(wanted[0], errors.New("no route"))
	if _, err := ask(); !says(err, "could not be read: no route") {
		t.Errorf("after it could not be read: %v", err)
	}
	if err := repositories.Answer(wanted[0], []byte("{}")); err == nil {
		t.Error("anything is a trusted root")
	}
	if _, err := ask(); !says(err, "could not be read: want a trusted_root.json") {
		t.Errorf("after something else was read: %v", err)
	}

	if err := repositories.Answer(wanted[0], h.theirs.TrustedRoot()); err != nil {
		t.Fatal(err)
	}
	before, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	theirs := signed{claim: verifytest.Claim{Signer: h.ann}, by: h.theirs}
	ours := signed{claim: verifytest.Claim{Signer: h.ann}}
	for i := range h.evidence(ours) {
		if err := h.prove(t.Context(), before, h.evidence(theirs)[i]); err != nil {
			t.Errorf("a log of the repository's root: %v", err)
		}
		if err := h.prove(t.Context(), before, h.evidence(ours)[i]); codeOf(err) != verify.BadLogEntry {
			t.Errorf("a log of the gateway's root: %v", err)
		}
	}
	if err := repositories.Answer(wanted[0], append([]byte(nil), h.theirs.TrustedRoot()...)); err != nil {
		t.Fatal(err)
	}
	repositories.Fail(wanted[0], errors.New("no route"))
	if again, err := ask(); err != nil || again[0] != before[0] {
		t.Errorf("the same root, and a failure after it, changed the authority (%v)", err)
	}
	if err := repositories.Answer(wanted[0], h.ours.TrustedRoot()); err != nil {
		t.Fatal(err)
	}
	if after, err := ask(); err != nil || after[0] == before[0] {
		t.Errorf("another root did not change the authority (%v)", err)
	}
}

func codeOf(err error) verify.Code {
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		return rejection.Code
	}
	return ""
}

// TestTUFWhereNoneIsRead and what needs none.
func TestTUFWhereNoneIsRead(t *testing.T) {
	ann := "keyless: {identities: [{issuer: a, subject: b}]"
	for _, c := range []struct{ text, want, reason string }{
		{"cosign: {key: {data: $KEY}, tuf: {}}", "spec.attestors[0].cosign.tuf: no TUF repository is read here", "a log is wanted"},
		{"cosign: {key: {data: $KEY}, ctlog: {insecureIgnoreTlog: true}, tuf: {}}", "", "a key without a log"},
		{"cosign: {key: {data: $KEY}, ctlog: {rekorPubKey: $KEY}, tuf: {}}", "", "a key with a log of its own"},
		{"cosign: {certificate: {cert: {value: $CERTIFICATE}}, ctlog: {insecureIgnoreTlog: true}, tuf: {}}", "no TUF repository is read", "a certificate timestamp is wanted"},
		{"cosign: {certificate: {cert: {value: $CERTIFICATE}}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}, tuf: {}}", "", "a certificate without logs"},
		{"cosign: {" + ann + "}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}, tuf: {}}", "no TUF repository is read", "a certificate authority is wanted"},
		{"cosign: {" + ann + ", roots: $CERTIFICATE}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}, tuf: {}}", "", "one of its own"},
		{"cosign: {" + ann + "}, trustedRoot: {value: $ROOT}, tuf: {}}", "", "a root that goes before the repository"},
	} {
		a := compile(t, fill(c.text), attestor.Options{})
		list, err := a.Authorities(t.Context(), attestor.Activations{})
		if c.want == "" && (err != nil || len(list) != 1 || a.TUF != nil) || c.want != "" && (!says(err, c.want) || list != nil) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestRepositoriesAreBounded: the repository that was unused for the longest time is
// evicted.
func TestRepositoriesAreBounded(t *testing.T) {
	repositories := attestor.NewRepositories()
	tuf := func(i int) attestor.TUF {
		return attestor.TUF{Key: fmt.Sprint(i), Mirror: fmt.Sprint("https://tuf", i, ".example")}
	}
	for i := range 64 {
		repositories.Want(tuf(i))
	}
	if err := repositories.Answer(tuf(1), root); err != nil {
		t.Fatal(err)
	}
	if _, err := repositories.TrustedRoot(tuf(0)); err == nil { // asked about, and so not the oldest
		t.Error("a root out of nothing")
	}
	repositories.Want(tuf(100))
	if got := repositories.Wanted(); len(got) != 64 || got[0].Key != "2" {
		t.Errorf("%d are wanted, the first is %s", len(got), got[0].Key)
	}
	if err := repositories.Answer(tuf(1), root); !says(err, "it is no longer in use") {
		t.Errorf("a response for an evicted repository: %v", err)
	}
	if err := repositories.Answer(tuf(2), root); err != nil {
		t.Error(err)
	}
	if got := repositories.Wanted(); got[len(got)-1].Key != "2" {
		t.Errorf("a known root is not read last: %s", got[len(got)-1].Key)
	}
	if got := (attestor.TUF{}).String(); got != "the public-good TUF repository" {
		t.Error(got)
	}
}

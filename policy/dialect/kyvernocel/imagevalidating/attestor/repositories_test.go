package attestor_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

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
	var wanted []attestor.TUF
	for _, one := range repositories.Wanted() {
		wanted = append(wanted, one.TUF)
	}
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
	if got := repositories.Wanted(); len(got) != 64 || got[0].Key != "100" {
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

// shares is repositories, which policies of namespaces request.
type shares struct {
	*testing.T
	*attestor.Repositories
}

func (s shares) request(namespace, name string) attestor.TUF {
	t := attestor.TUF{Key: name, Mirror: "https://" + name + ".example", Namespace: namespace}
	s.Want(t)
	return t
}

func (s shares) read(namespace, name string) {
	s.Helper()
	if err := s.Answer(s.request(namespace, name), root); err != nil {
		s.Error(err)
	}
}

// known requires that a root is cached, or that it is not.
func (s shares) known(namespace, name string, want bool) {
	s.Helper()
	for _, one := range s.Wanted() {
		if one.Key != name || !slices.Contains(one.Shares, namespace) {
			continue
		}
		if _, err := s.TrustedRoot(attestor.TUF{Key: name, Namespace: namespace}); err == nil {
			if !want {
				s.Errorf("%s of %q is cached", name, namespace)
			}
			return
		}
	}
	if want {
		s.Errorf("%s of %q is not cached", name, namespace)
	}
}

// TestShares: a namespace evicts its own repositories only.
func TestShares(t *testing.T) {
	s := shares{t, attestor.NewRepositories()}
	s.read("", "platform")
	s.read("", "both")
	s.read("team", "both")
	s.read("other", "others")
	for i := range 7 {
		s.read("team", fmt.Sprint("team", i))
	}
	s.known("team", "both", true) // the eighth; requested, and so not the oldest
	for i := range 100 {
		s.read("team", fmt.Sprint("more", i))
	}
	s.known("", "platform", true)
	s.known("", "both", true)
	s.known("other", "others", true)
	s.known("team", "both", false)
	s.known("team", "team6", false)
	s.known("team", "more92", true)
	s.known("team", "more91", false)
	if n := len(s.Wanted()); n != 3+8 {
		t.Errorf("%d are wanted, want the three of others and a share", n)
	}
	for i := range 63 {
		s.read("", fmt.Sprint("platform", i))
	}
	s.known("", "platform", false) // the policies of the whole cluster have a share, too
	s.known("", "platform62", true)
	s.known("other", "others", true)
	for i := range 20 {
		s.read("team", fmt.Sprint("late", i))
	}
	s.known("", "platform0", true) // the oldest of the largest share
	s.known("team", "late12", true)
	s.known("team", "late11", false)
}

// TestSharesOfAllNamespaces: together they are bounded, and the largest share yields.
func TestSharesOfAllNamespaces(t *testing.T) {
	s := shares{t, attestor.NewRepositories()}
	s.read("", "platform")
	for i := range 20 {
		s.read("", fmt.Sprint("platform", i))
	}
	s.read("small", "platform")
	s.read("small", "one")
	for n := range 40 {
		for i := range 8 {
			s.read(fmt.Sprint("large", n), fmt.Sprint("large", n, "-", i))
		}
	}
	if n := len(s.Wanted()); n != 256+21 {
		t.Errorf("%d are wanted, want those of the platform and 256", n)
	}
	s.known("", "platform0", true)
	s.known("small", "platform", true)
	s.known("small", "one", true)
	s.known("large0", "large0-0", false)
	s.known("large39", "large39-7", true)
	for n := range 40 {
		s.read(fmt.Sprint("joining", n), "one") // no new repository
	}
	s.known("small", "one", true)
	s.known("joining0", "one", true)
	if n := len(s.Wanted()); n != 256+21 {
		t.Errorf("%d are wanted after joining", n)
	}
}

// TestRepositoriesOfANamespace: a policy of a namespace names no more than its share, which would
// never be complete.
func TestRepositoriesOfANamespace(t *testing.T) {
	for _, row := range []struct {
		namespace string
		different int
		wrong     string
	}{
		{"team", 8, ""}, {"team", 9, "spec.attestors: 9 TUF repositories are more than the 8"}, {"", 9, ""},
	} {
		repositories := attestor.NewRepositories()
		repositories.Want(attestor.TUF{Key: "platform"})
		var list []v1alpha1.Attestor
		for i := range row.different * 2 {
			list = append(list, parse(t, fmt.Sprintf("{name: a%d, cosign: {keyless: {identities: [{issuer: i, subject: s}]}, tuf: {mirror: 'https://tuf.example/%d'}}}", i, i%row.different)))
		}
		_, err := attestor.Compile("spec.attestors", list, attestor.Options{Roots: repositories, Namespace: row.namespace})
		if (err == nil) != (row.wrong == "") || err != nil && !says(err, row.wrong) {
			t.Errorf("%d in namespace %q: got %v, want %q", row.different, row.namespace, err, row.wrong)
		}
		if !slices.ContainsFunc(repositories.Wanted(), func(w attestor.Wanted) bool { return w.Key == "platform" }) {
			t.Errorf("%d in namespace %q evicted the platform's", row.different, row.namespace)
		}
	}
}

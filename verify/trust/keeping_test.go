package trust_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// TestReaders: what could not be read to its end was not verified.
func TestReaders(t *testing.T) {
	private := ecdsaKey(t, elliptic.P384())
	key, err := trust.NewPublicKey(private.Public(), "")
	if err != nil {
		t.Fatal(err)
	}
	usual, err := signature.LoadECDSASigner(private, crypto.SHA384)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := usual.SignMessage(strings.NewReader("message"))
	if err != nil {
		t.Fatal(err)
	}
	broken := iotest.ErrReader(errors.New("broken"))
	whole := func(b []byte) io.Reader { return bytes.NewReader(b) }
	for reason, test := range map[string]struct {
		sig, message io.Reader
		good         bool
	}{
		"both":                        {whole(signed), strings.NewReader("message"), true},
		"a signature that breaks off": {io.MultiReader(whole(signed), broken), strings.NewReader("message"), false},
		"a message that breaks off":   {whole(signed), io.MultiReader(strings.NewReader("message"), broken), false},
	} {
		if err := key.VerifySignature(test.sig, test.message); (err == nil) != test.good {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}

// TestRetiredBound: a retired key changes no other authority.
func TestRetiredBound(t *testing.T) {
	gone, kept := publicPEM(t, ecdsaKey(t, elliptic.P256()).Public()), publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())
	block, _ := pem.Decode(gone)
	sum := sha256.Sum256(block.Bytes)
	end, own := time.Now().Truncate(time.Second), time.Now().Add(time.Hour)
	listed := []trust.Retired{{Fingerprint: hex.EncodeToString(sum[:]), NotAfter: end}}
	snapshot := newStore(t, trust.Options{Retired: listed}).Snapshot()
	keyless := &verify.Keyless{Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}}}
	for reason, test := range map[string]struct {
		authority verify.Authority
		want      time.Time
	}{
		"the key":                      {verify.Authority{Key: &verify.Key{PEM: gone}}, end},
		"the key, with a later end":    {verify.Authority{Key: &verify.Key{PEM: gone}, NotAfter: own}, end},
		"the key, with an earlier end": {verify.Authority{Key: &verify.Key{PEM: gone}, NotAfter: end.Add(-time.Hour)}, end.Add(-time.Hour)},
		"another key":                  {verify.Authority{Key: &verify.Key{PEM: kept}}, time.Time{}},
		"another key with its own end": {verify.Authority{Key: &verify.Key{PEM: kept}, NotAfter: own}, own},
		"no key":                       {verify.Authority{Keyless: keyless, NotAfter: own}, own},
		"an invalid key":               {verify.Authority{Key: &verify.Key{PEM: []byte("x")}, NotAfter: own}, own},
	} {
		got, err := snapshot.Resolve(t.Context(), test.authority)
		if err != nil || !got.NotAfter.Equal(test.want) {
			t.Errorf("%s: until %s, %v; want %s", reason, got.NotAfter, err, test.want)
		}
	}
	fingerprint := strings.Repeat("ab", 32)
	for count, good := range map[int]bool{1000: true, 1001: false} {
		list := make([]trust.Retired, count)
		for i := range list {
			sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
			list[i] = trust.Retired{Fingerprint: hex.EncodeToString(sum[:]), NotAfter: end}
		}
		if _, err := trust.New(trust.Options{Retired: list}); (err == nil) != good {
			t.Errorf("%d retired keys: got %v", count, err)
		}
	}
	if _, err := trust.New(trust.Options{Retired: []trust.Retired{{Fingerprint: fingerprint + "zz", NotAfter: end}}}); err == nil {
		t.Error("a fingerprint with something behind it was taken for one")
	}
}

// TestReferences: nothing is looked up by a name that is none.
func TestReferences(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	text := publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())
	snapshot := newStore(t, trust.Options{
		KMS:     &vault{key: weak.Public()},
		Secrets: cluster{"ns/key/cosign.pub": text, "/key/cosign.pub": text, "ns//cosign.pub": text, "//cosign.pub": text, "ns/a/b/cosign.pub": text},
	}).Snapshot()
	for ref, good := range map[string]bool{
		"k8s://ns/key": true, "k8s://ns/": false, "k8s:///key": false, "k8s:///": false, "k8s://": false, "k8s://ns": false, "k8s://ns/a/b": false,
		"awskms:///a-key-too-short": false,
	} {
		if _, err := snapshot.Resolve(t.Context(), verify.Authority{Name: "a", Key: &verify.Key{Ref: ref}}); (err == nil) != good {
			t.Errorf("%s: got %v", ref, err)
		}
	}
}

// TestPrivateParts: a private Sigstore has the parts that it is given, each of which can
// be read.
func TestPrivateParts(t *testing.T) {
	one := newSigstore("one")
	broken := []byte("x")
	for reason, test := range map[string]struct {
		private trust.Private
		good    bool
	}{
		"certificates alone":       {trust.Private{Fulcio: one.CA.ChainPEM()}, true},
		"a log alone":              {trust.Private{Rekor: one.Rekor.PublicPEM()}, true},
		"broken certificates":      {trust.Private{Fulcio: broken}, false},
		"a broken log":             {trust.Private{Rekor: broken}, false},
		"a broken CT log":          {trust.Private{CT: broken}, false},
		"a broken timestamp chain": {trust.Private{TSA: broken}, false},
		"all of them":              {trust.Private{Fulcio: one.CA.ChainPEM(), Rekor: one.Rekor.PublicPEM(), CT: one.CTLog.PublicPEM(), TSA: one.TSA.ChainPEM()}, true},
	} {
		if err := newStore(t, trust.Options{Private: test.private}).Snapshot().Check(); (err == nil) != test.good {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	for size, good := range map[int]bool{trust.MaxRoot: true, trust.MaxRoot + 1: false} {
		if _, err := trust.New(trust.Options{TrustedRoot: padded(one.TrustedRoot(), size)}); (err == nil) != good {
			t.Errorf("a root of %d bytes: got %v", size, err)
		}
	}
	if _, err := trust.New(trust.Options{TUF: &trust.TUF{Interval: -1, Client: newClient()}}); err == nil {
		t.Error("a negative interval was accepted")
	}
	if err := newStore(t, trust.Options{}).RefreshOnce(t.Context()); err == nil {
		t.Error("a store without a repository was refreshed")
	}
}

// TestKeptOrNot: a root that cannot be stored for the next start is in use, and reported; one
// without a folder is not written.
func TestKeptOrNot(t *testing.T) {
	t.Chdir(t.TempDir())
	repository := newRepository(t)
	repository.publish(t, newSigstore("new").TrustedRoot())
	server := httptest.NewServer(repository)
	defer server.Close()
	refreshed := func(cache string) (*trust.Store, error) {
		store := newStore(t, trust.Options{TUF: &trust.TUF{URL: server.URL, Root: repository.root, Client: server.Client(), CachePath: cache}})
		return store, store.RefreshOnce(t.Context())
	}
	if store, err := refreshed(""); err != nil || store.Status().Err != nil {
		t.Errorf("kept nowhere: got %v, %v", err, store.Status().Err)
	}
	if written, err := os.ReadDir("."); err != nil || len(written) != 0 {
		t.Errorf("kept nowhere: got %v, %v", written, err)
	}
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "last_trusted_root.json", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if store, err := refreshed(folder); err == nil || store.Status().Err == nil {
		t.Errorf("kept where nothing can be written: got %v, %v, want both to say so", err, store.Status().Err)
	}
	repository.publish(t, padded(newSigstore("long").TrustedRoot(), trust.MaxRoot+1))
	if _, err := refreshed(""); err == nil {
		t.Error("a root past the bound was taken")
	}
}

// TestLoopReportsFailures: and neither successes nor the end.
func TestLoopReportsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			stop() // the end comes while the repository is asked
			return nil, errors.New("no network")
		})
		store := newStore(t, trust.Options{TUF: &trust.TUF{Interval: time.Hour, Client: &http.Client{Transport: transport}}})
		err := store.Refresh(ctx, func(err error) { t.Errorf("reported %v after the end", err) })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the loop ended with %v", err)
		}
	})
}

// TestEndsOfParts: a chain ends with the first of its certificates, and a part that has one
// without an end has none.
func TestEndsOfParts(t *testing.T) {
	ca := issue(t, "root", true, nil)
	late := issueUntil(t, "late root", time.Now().Add(3*time.Hour), nil)
	early := issueUntil(t, "early", time.Now().Add(time.Hour), late)
	for reason, test := range map[string]struct {
		fulcio []byte
		want   time.Time
	}{
		"an intermediate that ends before its root": {pemOf(early, late), early.certificate.NotAfter},
		"a root that ends before its intermediate":  {pemOf(issueUntil(t, "longer", time.Now().Add(2*time.Hour), ca), ca), ca.certificate.NotAfter},
	} {
		ends, err := newStore(t, trust.Options{Private: trust.Private{Fulcio: test.fulcio, TSA: pemOf(late)}}).Snapshot().Ends()
		if err != nil || !ends[trust.PartFulcio].Equal(test.want) || !ends[trust.PartTimestamp].Equal(late.certificate.NotAfter) {
			t.Errorf("%s: got %v, %v; want %s", reason, ends, err, test.want)
		}
	}
}

// issueUntil makes a certificate authority that ends at a time.
func issueUntil(t *testing.T, name string, end time.Time, parent *issuer) *issuer {
	t.Helper()
	made := issue(t, name, true, nil)
	template := *made.certificate
	template.NotAfter = end
	signer, key := &template, made.key
	if parent != nil {
		signer, key = parent.certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, signer, made.key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	made.certificate, err = x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

package trust_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func newStore(t testing.TB, o trust.Options) *trust.Store {
	t.Helper()
	store, err := trust.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newSigstore(name string) *verifytest.Sigstore {
	return verifytest.Must(verifytest.New(verifytest.Options{Name: name}))
}

func TestGeneration(t *testing.T) {
	one, two := newSigstore("one"), newSigstore("two")
	root := one.TrustedRoot()
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, root, "", "    "); err != nil {
		t.Fatal(err)
	}
	private := trust.Private{Fulcio: one.CA.ChainPEM(), Rekor: one.Rekor.PublicPEM(), CT: one.CTLog.PublicPEM(), TSA: one.TSA.ChainPEM()}
	otherLog := private
	otherLog.Rekor = two.Rekor.PublicPEM()
	of := func(o trust.Options) string { return newStore(t, o).Snapshot().Generation() }
	base := of(trust.Options{TrustedRoot: root})
	tests := []struct {
		reason string
		other  trust.Options
		equal  bool
	}{
		{"the same bytes", trust.Options{TrustedRoot: root}, true},
		{"other white space", trust.Options{TrustedRoot: spaced.Bytes()}, true},
		{"other ways to look up keys", trust.Options{TrustedRoot: root, KeyInterval: time.Minute}, true},
		{"another root", trust.Options{TrustedRoot: two.TrustedRoot()}, false},
		{"a second Sigstore beside it", trust.Options{TrustedRoot: one.TrustedRoot(two)}, false},
		{"the public-good root", trust.Options{}, false},
		{"PEM files", trust.Options{Private: private}, false},
	}
	for _, test := range tests {
		if got := of(test.other) == base; got != test.equal {
			t.Errorf("%s: equal is %t, want %t", test.reason, got, test.equal)
		}
	}
	copied := private
	if of(trust.Options{Private: private}) != of(trust.Options{Private: copied}) {
		t.Error("equal PEM files have two generations")
	}
	if of(trust.Options{Private: private}) == of(trust.Options{Private: otherLog}) {
		t.Error("another log key has the same generation")
	}
}

func TestEmbeddedRoot(t *testing.T) {
	store := newStore(t, trust.Options{})
	if err := store.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
	material, err := store.Snapshot().Material(verify.Authority{Name: "a", Keyless: &verify.Keyless{
		Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(material.RekorLogs()) != 2 || len(material.FulcioCertificateAuthorities()) != 2 || len(material.CTLogs()) != 2 || len(material.TimestampingAuthorities()) != 1 {
		t.Errorf("the public-good root has %d logs, %d authorities, %d CT logs, %d timestamp authorities",
			len(material.RekorLogs()), len(material.FulcioCertificateAuthorities()), len(material.CTLogs()), len(material.TimestampingAuthorities()))
	}
}

func TestNewRefuses(t *testing.T) {
	root := newSigstore("one").TrustedRoot()
	for reason, options := range map[string]trust.Options{
		"two roots":              {TrustedRoot: root, Private: trust.Private{Rekor: []byte("x")}},
		"a root past the bound":  {TrustedRoot: bytes.Repeat([]byte(" "), trust.MaxRoot+1)},
		"a negative interval":    {KeyInterval: -1},
		"TUF without client":     {TUF: &trust.TUF{}},
		"TUF without first root": {TUF: &trust.TUF{URL: "https://tuf.example", Client: newClient()}},
	} {
		if _, err := trust.New(options); err == nil {
			t.Errorf("%s: accepted", reason)
		}
	}
}

// TestLazyRoot: only an authority that needs a root has it parsed, and a broken
// one is an error and no rejection.
func TestLazyRoot(t *testing.T) {
	one := newSigstore("one")
	snapshot := newStore(t, trust.Options{TrustedRoot: []byte(`{"mediaType":"none"}`)}).Snapshot()
	key := verify.Key{PEM: publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())}
	identities := []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}}
	past := time.Now()
	tests := []struct {
		reason    string
		authority verify.Authority
		needs     bool
	}{
		{"a key without log", verify.Authority{Key: &key, Log: verify.Log{Ignore: true}}, false},
		{"a key with the policy's log", verify.Authority{Key: &key, Log: verify.Log{Keys: one.Rekor.PublicPEM()}}, false},
		{"a key with the policy's timestamp authority", verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Required: true, Chain: one.TSA.ChainPEM()}}, false},
		{"a key with a root of its own", verify.Authority{Key: &key, TrustedRoot: one.TrustedRoot()}, false},
		{"a chain without log and CT", verify.Authority{Certificate: &verify.Certificate{Chain: one.CA.ChainPEM(), CT: verify.CT{Ignore: true}}, Log: verify.Log{Ignore: true}}, false},
		{"a private Sigstore", verify.Authority{Keyless: &verify.Keyless{Identities: identities, Roots: one.CA.ChainPEM(), CT: verify.CT{Keys: one.CTLog.PublicPEM()}}, Log: verify.Log{Keys: one.Rekor.PublicPEM()}}, false},
		{"a key with the log", verify.Authority{Key: &key}, true},
		{"a key with any timestamp authority", verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Required: true}}, true},
		{"a key that is bounded in time", verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, NotBefore: past}, true},
		{"keyless", verify.Authority{Keyless: &verify.Keyless{Identities: identities}}, true},
		{"a chain with CT", verify.Authority{Certificate: &verify.Certificate{Chain: one.CA.ChainPEM()}, Log: verify.Log{Ignore: true}}, true},
	}
	for _, test := range tests {
		test.authority.Name = test.reason
		_, err := snapshot.Material(test.authority)
		if (err != nil) != test.needs {
			t.Errorf("%s: got error %v, want one: %t", test.reason, err, test.needs)
		}
		if _, isRejection := errors.AsType[*verify.Rejection](err); isRejection {
			t.Errorf("%s: a broken root is a rejection", test.reason)
		}
	}
	if snapshot.Check() == nil {
		t.Error("Check found nothing wrong with the root")
	}
}

func TestMaterialRefuses(t *testing.T) {
	one := newSigstore("one")
	snapshot := newStore(t, trust.Options{Private: trust.Private{Fulcio: one.CA.ChainPEM()}}).Snapshot()
	key := verify.Key{PEM: publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())}
	keyless := verify.Keyless{Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}}}
	ca := one.CA.ChainPEM()
	tests := []struct {
		authority verify.Authority
		want      string
	}{
		{verify.Authority{Key: &key}, "no transparency log"},
		{verify.Authority{Keyless: &keyless, Log: verify.Log{Ignore: true}}, "no certificate transparency log"},
		{verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Required: true}}, "no timestamp authority"},
		{verify.Authority{Key: &key, TrustedRoot: one.TrustedRoot(), Log: verify.Log{URL: "https://other.example"}}, "no transparency log https://other.example"},
		{verify.Authority{Key: &key, TrustedRoot: one.TrustedRoot(), Log: verify.Log{URL: "other"}}, "want https://"},
		{verify.Authority{Key: &key, Log: verify.Log{Keys: []byte("key")}}, "PEM"},
		{verify.Authority{Key: &verify.Key{Ref: "k8s://a/b"}}, "not resolved"},
		{verify.Authority{Key: &verify.Key{PEM: []byte("key")}, Log: verify.Log{Ignore: true}}, "PEM"},
		{verify.Authority{Key: &key, Keyless: &keyless}, "exactly one"},
		{verify.Authority{Notation: &verify.Notation{CA: ca}, Log: verify.Log{Ignore: true}}, "notation"},
		{verify.Authority{Certificate: &verify.Certificate{Leaf: ca}, Log: verify.Log{Ignore: true}}, "want one certificate, found"},
		{verify.Authority{Certificate: &verify.Certificate{Chain: []byte("chain")}, Log: verify.Log{Ignore: true}}, "certificate chain"},
		{verify.Authority{Certificate: &verify.Certificate{Chain: bytes.Repeat(one.CA.RootPEM(), trust.MaxCertificates+1)}, Log: verify.Log{Ignore: true}}, "bound"},
		{verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Chain: one.TSA.LeafPEM()}}, "no certificate authority"},
		{verify.Authority{Key: &key, Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Chain: append(one.TSA.ChainPEM(), ca...)}}, "more than one root"},
	}
	for _, test := range tests {
		test.authority.Name = "a"
		_, err := snapshot.Material(test.authority)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want an error that contains %q", err, test.want)
		}
	}
}

// vault is a key management service and a cluster; both are asked in the test's
// own time.
type vault struct {
	mu    sync.Mutex
	key   crypto.PublicKey
	err   error
	asked atomic.Int32
	wait  chan struct{} // if not nil, an answer waits for it
}

func (v *vault) set(key crypto.PublicKey, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key, v.err = key, err
}

func (v *vault) PublicKey(ctx context.Context, _ string) (crypto.PublicKey, error) {
	v.asked.Add(1)
	if v.wait != nil {
		select {
		case <-v.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.key, v.err
}

// cluster answers with the Secret "ns/key".
type cluster map[string][]byte

func (c cluster) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	secret, ok := c[namespace+"/"+name+"/"+key]
	if !ok {
		return nil, errors.New("not found")
	}
	return secret, nil
}

func TestResolve(t *testing.T) {
	key := ecdsaKey(t, elliptic.P256()).Public()
	text := string(publicPEM(t, key))
	snapshot := newStore(t, trust.Options{
		KMS:     &vault{key: key},
		Secrets: cluster{"ns/key/cosign.pub": []byte(text), "ns/broken/cosign.pub": []byte("x"), "ns/empty/cosign.pub": nil},
	}).Snapshot()
	bare := newStore(t, trust.Options{}).Snapshot()
	tests := []struct {
		reason, ref string
		from        *trust.Snapshot
		want        string // part of the error; empty means resolved
	}{
		{"the key itself", text, snapshot, ""},
		{"a Secret", "k8s://ns/key", snapshot, ""},
		{"a KMS", "awskms:///alias/key", snapshot, ""},
		{"two keys", text + text, snapshot, "one authority for each key"},
		{"another Secret", "k8s://ns/other", snapshot, "not found"},
		{"a Secret with a broken key", "k8s://ns/broken", snapshot, "cosign.pub"},
		{"a Secret without a key", "k8s://ns/empty", snapshot, "no entry cosign.pub"},
		{"a Secret without namespace", "k8s://key", snapshot, "k8s://namespace/name"},
		{"a Secret with a path", "k8s://ns/key/more", snapshot, "k8s://namespace/name"},
		{"a scheme that would run a program", "evilkms://key", snapshot, "awskms://"},
		{"a file", "/etc/passwd", snapshot, "awskms://"},
		{"no cluster", "k8s://ns/key", bare, "no cluster"},
		{"no KMS", "gcpkms://key", bare, "no key management service"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			resolved, err := test.from.Resolve(t.Context(), verify.Authority{Name: "a", Key: &verify.Key{Ref: test.ref, Hash: "sha256"}})
			switch {
			case test.want == "" && err != nil:
				t.Errorf("not resolved: %v", err)
			case test.want == "" && (string(resolved.Key.PEM) != text || resolved.Key.Hash != "sha256"):
				t.Errorf("resolved to %+v", resolved.Key)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error that contains %q", err, test.want)
			}
			if _, isRejection := errors.AsType[*verify.Rejection](err); isRejection {
				t.Error("a failed look-up is a rejection")
			}
		})
	}
	given := verify.Authority{Name: "a", Key: &verify.Key{PEM: []byte("as it is")}}
	if same, err := bare.Resolve(t.Context(), given); err != nil || same.Key != given.Key {
		t.Errorf("a key without reference was resolved: %v, %v", same.Key, err)
	}
}

// TestLookUpAgain follows one key through its life, in a time of its own.
func TestLookUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := ecdsaKey(t, elliptic.P256()).Public(), ecdsaKey(t, elliptic.P256()).Public()
		kms := &vault{err: errors.New("down")}
		store := newStore(t, trust.Options{KMS: kms, KeyInterval: time.Hour})
		get := func() (crypto.PublicKey, error) {
			a, err := store.Snapshot().Resolve(t.Context(), verify.Authority{Name: "a", Key: &verify.Key{Ref: "awskms:///k"}})
			synctest.Wait() // for what goes on beside the request
			if err != nil {
				return nil, err
			}
			if bytes.Equal(a.Key.PEM, publicPEM(t, first)) {
				return first, nil
			}
			return second, nil
		}
		expect := func(when string, want crypto.PublicKey, asked int32) {
			t.Helper()
			got, err := get()
			if got != want || (err != nil) != (want == nil) {
				t.Errorf("%s: got %v, %v", when, got, err)
			}
			if kms.asked.Load() != asked {
				t.Errorf("%s: asked %d times, want %d", when, kms.asked.Load(), asked)
			}
		}
		expect("while it is down", nil, 1)
		if stale := store.Status().Stale; len(stale) != 0 {
			t.Errorf("status reports stale keys where there is none: %v", stale)
		}
		kms.set(first, nil)
		expect("at first", first, 2)
		expect("right after", first, 2)
		kms.set(second, nil)
		<-time.After(time.Hour)
		expect("after the interval, beside the request", first, 3)
		expect("the request after", second, 3)
		kms.set(nil, errors.New("away"))
		<-time.After(time.Hour)
		expect("while the service is away", second, 4)
		if stale := store.Status().Stale; len(stale) != 1 {
			t.Errorf("status reports %d stale keys, want 1", len(stale))
		}
		expect("a failed look-up waits for its interval, too", second, 4)
		<-time.After(24 * time.Hour)
		expect("after the hold, the failure shows", nil, 5)
		expect("and is not kept", nil, 6)
		kms.set(first, nil)
		expect("until the service is back", first, 7)
		if stale := store.Status().Stale; len(stale) != 0 {
			t.Errorf("status still reports stale keys: %v", stale)
		}
	})
}

// TestLookUpOnce: concurrent callers share one look-up, and one that leaves
// does not end it.
func TestLookUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kms := &vault{key: ecdsaKey(t, elliptic.P256()).Public(), wait: make(chan struct{})}
		snapshot := newStore(t, trust.Options{KMS: kms}).Snapshot()
		authority := verify.Authority{Name: "a", Key: &verify.Key{Ref: "awskms:///k"}}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := snapshot.Resolve(ctx, authority)
			left <- err
		}()
		synctest.Wait()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if _, err := snapshot.Resolve(t.Context(), authority); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
		close(kms.wait)
		group.Wait()
		if asked := kms.asked.Load(); asked != 1 {
			t.Errorf("the service was asked %d times, want once", asked)
		}
	})
}

// A Snapshot names its content, and gives what an authority's signatures are
// proved against.
func Example() {
	store, err := trust.New(trust.Options{})
	if err != nil {
		panic(err)
	}
	snapshot := store.Snapshot()
	material, err := snapshot.Material(verify.Authority{
		Name: "release", Keyless: &verify.Keyless{Identities: []verify.Identity{{
			Issuer: verify.Exactly("https://login.example"), Subject: verify.Exactly("dev@example.org"),
		}}},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(snapshot.Origin())
	fmt.Println(len(material.RekorLogs()), "transparency logs")
	// Output:
	// embedded public-good root
	// 2 transparency logs
}

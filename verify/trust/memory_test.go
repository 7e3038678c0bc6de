package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// TestMemoryIsBounded fills the cache: it never has more than its bound, and all
// of it until then.
func TestMemoryIsBounded(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	store, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, snapshot := store.keys, store.Snapshot()
	large := &Snapshot{materials: map[string]*memo{}}
	for name, test := range map[string]struct {
		most int
		add  func(i int) error
		have func() int
	}{
		"keys in policies": {maxKeys, func(i int) error {
			_, err := keys.inline(text + strings.Repeat("\n", i%2000) + strings.Repeat(" ", i/2000))
			return err
		}, func() int { return len(keys.parsed) }},
		"keys that were looked up": {maxKeys, func(i int) error {
			keys.remember(fmt.Sprint(i), []byte(text), nil)
			return nil
		}, func() int { return len(keys.known) }},
		"materials": {maxMaterials, func(i int) error {
			snapshot.memo(fmt.Sprint(i), verify.Authority{})
			return nil
		}, func() int { return len(snapshot.materials) }},
		"large materials": {maxMaterialBytes >> 20, func(i int) error {
			large.memo(fmt.Sprint(i), verify.Authority{TrustedRoot: make([]byte, 1<<20)})
			return nil
		}, func() int { return len(large.materials) }},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range test.most + 1 {
				if err := test.add(i); err != nil {
					t.Fatal(err)
				}
				if want := i%test.most + 1; test.have() != want {
					t.Fatalf("after %d: %d are remembered, want %d", i+1, test.have(), want)
				}
			}
		})
	}
	full := len(keys.known)
	keys.remember("0", []byte(text), nil)
	for i := 1; len(keys.known) < maxKeys; i++ {
		keys.remember(fmt.Sprint("more", i), []byte(text), nil)
	}
	keys.remember("0", []byte(text), nil)
	if len(keys.known) != maxKeys {
		t.Errorf("a key that is renewed drove out the others: %d of %d are left", len(keys.known), full)
	}
	again := snapshot.memo("same", verify.Authority{})
	if snapshot.memo("same", verify.Authority{}) != again {
		t.Error("a material was composed twice")
	}
}

// TestHoldIsBounded: a key that cannot be renewed is used for its time, and not at its end.
func TestHoldIsBounded(t *testing.T) {
	const ref = "awskms:///alias/key"
	for age, good := range map[time.Duration]bool{keyHold*time.Hour - 1: true, keyHold * time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			keys := &keyring{interval: time.Hour, now: time.Now, known: map[string]knownKey{}}
			keys.remember(ref, []byte("key"), nil)
			time.Sleep(age) //nolint:forbidigo // the clock of the bubble
			if _, err := keys.get(t.Context(), ref); (err == nil) != good {
				t.Errorf("after %s: got %v", age, err)
			}
		})
	}
}

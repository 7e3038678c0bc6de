package trust_test

import (
	"bytes"
	"maps"
	"testing"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// FuzzRoot holds that no trusted root makes the store panic, and that what cannot be
// read is an error and no empty trust.
func FuzzRoot(f *testing.F) {
	f.Add(newSigstore("one").TrustedRoot())
	f.Add(newSigstore("one").TrustedRoot(newSigstore("two")))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[{"publicKey":{"rawBytes":"AA=="}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		store, err := trust.New(trust.Options{TrustedRoot: text})
		if err != nil {
			return
		}
		snapshot := store.Snapshot()
		keyless := verify.Authority{Name: "a", Keyless: &verify.Keyless{Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}}}}
		material, err := snapshot.Material(keyless)
		if snapshot.Check() != nil && err == nil {
			t.Errorf("a root that cannot be read is trusted: %+v", material)
		}
	})
}

// FuzzFetch holds that no bytes of a TUF repository make a refresh panic, and that
// nothing is taken but what its keys signed.
func FuzzFetch(f *testing.F) {
	ours := newRepository(f)
	content := newSigstore("ours").TrustedRoot()
	ours.publish(f, content)
	good := ours.folder("targets")
	names := []string{"timestamp.json", "1.snapshot.json", "1.targets.json", "2.root.json"}
	for i, name := range names {
		f.Add(uint(i), good[name])
	}
	f.Add(uint(3), ours.root)
	f.Add(uint(0), []byte(`{"signed":{"_type":"timestamp"},"signatures":[]}`))
	f.Add(uint(2), []byte(`{"signed":{"_type":"targets","delegations":{"roles":[{"threshold":0}]}}}`))
	f.Fuzz(func(t *testing.T, which uint, text []byte) {
		files := maps.Clone(good)
		files[names[which%uint(len(names))]] = text
		got, err := (&trust.TUF{Files: files, Root: ours.root}).Fetch(t.Context())
		if err == nil && !bytes.Equal(got, content) {
			t.Errorf("accepted, and unsigned: %q", got)
		}
	})
}

package snapshots

import (
	"bytes"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestSnapshotSecrets(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("quaymaster")
	store := NewSecretStore(secrets)
	if parts, err := store.Load(t.Context()); err != nil || len(parts) != 0 {
		t.Errorf("at first: %q, %v", parts, err)
	}
	for reason, parts := range map[string][][]byte{
		"three": {[]byte("a"), []byte("b"), []byte("c")}, "fewer": {[]byte("d")}, "as many as there may be": slices.Repeat([][]byte{[]byte("e")}, maxParts), "none": {},
	} {
		if err := store.Save(t.Context(), parts); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		got, err := store.Load(t.Context())
		if err != nil || !slices.EqualFunc(got, parts, bytes.Equal) {
			t.Errorf("%s: %q, %v", reason, got, err)
		}
	}
	if err := store.Save(t.Context(), [][]byte{bytes.Repeat([]byte("x"), maxEntry+1)}); err == nil {
		t.Error("a part that no Secret has room for is taken")
	}
}

// TestAPartThatHasNoRoomTakesNoOtherAway: what follows it is kept and read, and what
// there is no more of is emptied behind a gap, too.
func TestAPartThatHasNoRoomTakesNoOtherAway(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("quaymaster")
	store := NewSecretStore(secrets)
	large := bytes.Repeat([]byte("x"), maxEntry+1)
	if err := store.Save(t.Context(), [][]byte{large, []byte("b"), []byte("c")}); err == nil {
		t.Error("a part that no Secret has room for is taken")
	}
	parts, err := store.Load(t.Context())
	if err != nil || !slices.EqualFunc(parts, [][]byte{[]byte("b"), []byte("c")}, bytes.Equal) {
		t.Errorf("%q, %v", parts, err)
	}
	if err := store.Save(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if parts, err := store.Load(t.Context()); err != nil || len(parts) != 0 {
		t.Errorf("after all of it is gone: %q, %v", parts, err)
	}
}

// TestSnapshotSecretsOfOthersAreLeftAlone: a name is no proof.
func TestSnapshotSecretsOfOthersAreLeftAlone(t *testing.T) {
	theirs := &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "quaymaster", Name: "quaymaster-snapshot-0"}, Type: core.SecretTypeOpaque,
		Data: map[string][]byte{"part": []byte("theirs")},
	}
	secrets := fake.NewClientset(theirs).CoreV1().Secrets("quaymaster")
	store := NewSecretStore(secrets)
	if parts, err := store.Load(t.Context()); err != nil || len(parts) != 0 {
		t.Errorf("read as ours: %q, %v", parts, err)
	}
	if err := store.Save(t.Context(), [][]byte{[]byte("ours")}); err == nil {
		t.Error("it is written over")
	}
	left, err := secrets.Get(t.Context(), theirs.Name, metav1.GetOptions{})
	if err != nil || string(left.Data["part"]) != "theirs" {
		t.Errorf("%q, %v", left.Data, err)
	}
}

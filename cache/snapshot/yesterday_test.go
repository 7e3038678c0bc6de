package snapshot_test

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/cache/snapshot"
)

// TestYesterday: a replica with the key reads parts of the previous version. testdata/yesterday
// was written by that version.
func TestYesterday(t *testing.T) {
	folder, err := snapshot.NewFolder("testdata/yesterday")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := folder.Load(t.Context())
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	sealer, err := snapshot.NewSealer([]byte("a key of replicas, of yesterday."))
	if err != nil {
		t.Fatal(err)
	}
	other, err := snapshot.NewSealer([]byte("a key of replicas, of somebody's"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"what was proved yesterday", "and more of it"} {
		if got, err := sealer.Open(parts[i]); err != nil || string(got) != want {
			t.Errorf("part %d: %q, %v", i, got, err)
		}
		if _, err := other.Open(parts[i]); !errors.Is(err, snapshot.ErrSealed) {
			t.Errorf("part %d by another key: %v", i, err)
		}
		for at, what := range map[int]string{0: "of a later version", len(parts[i]) / 2: "damaged"} {
			changed := append([]byte(nil), parts[i]...)
			changed[at]++
			if _, err := sealer.Open(changed); !errors.Is(err, snapshot.ErrSealed) {
				t.Errorf("part %d, %s: %v", i, what, err)
			}
		}
	}
}

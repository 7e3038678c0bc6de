package sigstore_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
)

func TestBuild(t *testing.T) {
	for _, n := range []string{peers.Fulcio, peers.TimestampServer} {
		p, err := peers.Build(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(p)
	}
}

package registry_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestInsecure: TLS is given up only by the client that was asked to.
func TestInsecure(t *testing.T) {
	for _, c := range []struct {
		reason string
		tls    bool
	}{
		{"a certificate of an unknown authority", true},
		{"no TLS at all", false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			server := registrytest.Start(registrytest.Options{TLS: c.tls})
			t.Cleanup(server.Close)
			want := server.PutImage("app", "v1", "content").Digest
			strict, err := registry.New(registry.Config{LoopbackTLS: []string{server.Host()}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(strict.Close)
			ref := image.MustParse(server.Host() + "/app:v1")
			if pinned, err := strict.Resolve(t.Context(), ref); image.KindOf(err) != image.Unavailable {
				t.Fatalf("the strict client got %s, %v", pinned, err)
			}
			lax := strict.Insecure()
			t.Cleanup(lax.Close)
			pinned, err := lax.Resolve(t.Context(), ref)
			if err != nil || pinned.Digest().String() != want {
				t.Fatalf("%s, %v; want %s", pinned, err, want)
			}
			if _, err := strict.Resolve(t.Context(), ref); image.KindOf(err) != image.Unavailable {
				t.Fatalf("the strict client learnt from the other: %v", err)
			}
		})
	}
}

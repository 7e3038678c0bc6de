package keychain_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
)

func BenchmarkOpen(b *testing.B) {
	c := &cluster{
		secrets: map[string]secret{
			"team/pull": login("registry.example user:"+password, "https://index.docker.io/v1/ user:x"),
		},
		accounts: map[string][]string{"team/default": nil},
	}
	for _, test := range []struct {
		name, reference string
		request         keychain.Request
	}{
		{"anonymous", "ghcr.io/team/app", keychain.Request{Namespace: "team", ServiceAccount: "default"}},
		{"anonymous beside a Secret", "ghcr.io/team/app", keychain.Request{Namespace: "team", ServiceAccount: "default", PullSecrets: []string{"pull"}}},
		{"with a Secret", "registry.example/team/app", keychain.Request{Namespace: "team", ServiceAccount: "default", PullSecrets: []string{"pull"}}},
		{"with a policy's", "registry.example/team/app", keychain.Request{Namespace: "team", PolicySecrets: []string{"team/pull"}}},
	} {
		b.Run(test.name, func(b *testing.B) {
			k := newKeychain(b, c, func(config *keychain.Config) {
				config.Gateway = []string{"team/pull"}
				config.Providers = map[string]registry.Source{"amazon": {Name: "amazon", Keychain: fixed{host: "none"}}}
				config.Cloud = []string{"amazon"}
			})
			repository := image.MustParse(test.reference).Repository()
			b.ReportAllocs()
			for b.Loop() {
				c.asked = c.asked[:0]
				if _, _, err := k.Open(b.Context(), test.request, repository); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

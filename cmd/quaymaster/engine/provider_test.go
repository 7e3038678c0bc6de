package engine

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// anybody gives a credential to every registry.
type anybody struct{}

func (anybody) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "token", Password: "secret"}, nil
}

func TestATokenStaysWithItsCloud(t *testing.T) {
	confined := within{keychain: anybody{}, domains: []string{".azurecr.io"}}
	for _, c := range []struct {
		reason, host string
		given        bool
	}{
		{"its own registry", "team.azurecr.io", true},
		{"the domain in front of another", "team.azurecr.io.evil.test", false},
		{"the domain at the end of another word", "evilazurecr.io", false},
		{"another port is another host", "team.azurecr.io:8443", false},
		{"another cloud", "registry.test", false},
	} {
		got, err := confined.Resolve(name.MustParseReference("placeholder.test/app").Context().Registry)
		if err != nil || got != authn.Anonymous {
			t.Fatalf("a host of no cloud is given %v, %v", got, err)
		}
		registry, err := name.NewRegistry(c.host)
		if err != nil {
			t.Fatal(err)
		}
		got, err = confined.Resolve(registry)
		if err != nil || (got != authn.Anonymous) != c.given {
			t.Errorf("%s (%s): given %t, want %t: %v", c.reason, c.host, got != authn.Anonymous, c.given, err)
		}
	}
	for _, known := range Providers() {
		if source, err := Provider(known); err != nil || source.Keychain == nil {
			t.Errorf("provider %s: %v", known, err)
		}
	}
	if _, err := Provider("nobody"); err == nil {
		t.Error("an unknown provider is taken")
	}
}

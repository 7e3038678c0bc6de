package bundle_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/bundle"
)

func TestSecretsArePublic(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for _, c := range []struct {
		reason, value string
		kept          bool
	}{
		{"a public key", string(public), true},
		{"two public keys", string(public) + string(public), true},
		{"a private key", string(secret), false},
		{"a private key behind a public one", string(public) + string(secret), false},
		{"a text in front of a public key", "password\n" + string(public), false},
		{"a text behind a public key", string(public) + "password\n", false},
		{"a password", "password", false},
		{"nothing", "", false},
	} {
		var contents bundle.Contents
		named := bundle.Object{Namespace: "shop", Name: "keys"}
		if err := contents.AddSecret(named, "Opaque", map[string][]byte{"entry": []byte(c.value)}, "a test"); err != nil {
			t.Fatal(err)
		}
		var read struct {
			Data map[string]string `json:"data"`
		}
		if err := json.Unmarshal(contents.Resources[0].Text, &read); err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.kept {
			want = base64.StdEncoding.EncodeToString([]byte(c.value))
		}
		if got, there := read.Data["entry"]; !there || got != want {
			t.Errorf("%s: kept %q, want %q", c.reason, got, want)
		}
		if noted := strings.Contains(strings.Join(contents.Notes, "\n"), "entry"); noted == c.kept {
			t.Errorf("%s: notes %q", c.reason, contents.Notes)
		}
		if !contents.HasResource("Secret/shop/keys") || contents.HasResource("Secret/shop/others") {
			t.Errorf("%s: resources %v", c.reason, contents.Resources)
		}
	}
}

package kms_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// TestSign: every service signs, and the signature is of the key that it names.
func TestSign(t *testing.T) {
	message := []byte("a summary")
	each(t, func(t *testing.T, p provider, _ *port, s *safe) {
		signer := kms.Providers{AllowAnyEndpoint: p.any}
		signed, public, err := signer.Sign(t.Context(), p.uri("signing"), message)
		if err != nil {
			t.Fatal(err)
		}
		key, err := trust.NewPublicKey(public, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := key.VerifySignature(bytes.NewReader(signed), bytes.NewReader(message)); err != nil {
			t.Error(err)
		}
		if err := key.VerifySignature(bytes.NewReader(signed), bytes.NewReader([]byte("another"))); err == nil {
			t.Error("the signature is of anything")
		}
		s.add(t, "closed")
		s.deny("closed")
		for _, name := range []string{"closed", "unknown"} {
			_, _, err := signer.Sign(t.Context(), p.uri(name), message)
			if err == nil {
				t.Fatalf("signed with the key %s", name)
			}
			keepSecrets(t, fmt.Sprint(err))
		}
		earth.cut(p.host)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := signer.Sign(ctx, p.uri("signing"), message); err == nil {
			t.Error("signed by a service that is down")
		}
	})
}

// TestSignRefusesUnknownHosts: a URI does not choose where our credentials go.
func TestSignRefusesUnknownHosts(t *testing.T) {
	for _, uri := range []string{"awskms://kms.example/alias/signing", "azurekms://vault.example.org/signing"} {
		if _, _, err := (kms.Providers{}).Sign(t.Context(), uri, nil); err == nil || !strings.Contains(err.Error(), " names the ") {
			t.Errorf("%s was asked: %v", uri, err)
		}
	}
}

// TestSignHostileAnswers: an invalid signature is an error, never a panic.
func TestSignHostileAnswers(t *testing.T) {
	for uri, host := range map[string]string{"hashivault://signing": vaultHost, "awskms:///alias/signing": awsHost, "azurekms://quay.vault.azure.net/signing": azureHost} {
		for _, answer := range []string{``, `{}`, `{"data":{"signature":"vault:v1:x"}}`, `{"key":{}}`} {
			earth.serve(t, host, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, answer)
			}))
			if _, _, err := (kms.Providers{}).Sign(t.Context(), uri, nil); err == nil {
				t.Errorf("%s: %q is a signature", uri, answer)
			}
		}
	}
}

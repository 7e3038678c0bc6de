package verifytest_test

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
)

var serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// wantRefusal checks that a verifier accepted (no words), or refused with the
// words; a bar parts those of several verifiers.
func wantRefusal(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("refused: %v", err)
	case words != "" && err == nil:
		t.Errorf("accepted, want a refusal with %q", words)
	case words != "" && !slices.ContainsFunc(strings.Split(words, "|"), func(w string) bool { return strings.Contains(err.Error(), w) }):
		t.Errorf("refused with %q, want %q", err, words)
	}
}

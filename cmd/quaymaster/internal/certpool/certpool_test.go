package certpool_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func TestRead(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notary := verifytest.Must(verifytest.NewNotary(verifytest.NotaryOptions{}))
	path := write("ca.pem", string(notary.RootPEM()))
	pool, err := certpool.Read(path, false)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := notary.Root().Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil || len(verified) != 1 {
		t.Errorf("the authority of the file: %v, %v", verified, err)
	}
	for _, c := range []struct{ reason, path, err string }{
		{"no file", filepath.Join(folder, "none"), "no such file"},
		{"no certificate", write("empty.pem", "# nothing\n"), "no PEM certificate in it"},
	} {
		if _, err := certpool.Read(c.path, false); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

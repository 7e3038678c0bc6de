package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefused: its signatures are verified in test/release, by quaymaster.
func TestRefused(t *testing.T) {
	folder := t.TempDir()
	text, key := filepath.Join(folder, "text"), filepath.Join(folder, "key")
	for file, content := range map[string]string{text: "no PEM", key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := "quay.test/app@sha256:" + strings.Repeat("a", 64)
	for _, row := range []struct {
		reason string
		args   []string
		says   string
	}{
		{"no key", []string{"--chain", text, image}, "want --key"},
		{"no image", []string{"--key", key, "--chain", text}, "want --key"},
		{"two images", []string{"--key", key, "--chain", text, image, image}, "want --key"},
		{"no such key", []string{"--key", key + "x", "--chain", text, image}, "no such file"},
		{"no PEM", []string{"--key", text, "--chain", text, image}, "no PEM"},
		{"no key in it", []string{"--key", key, "--chain", text, image}, "PKCS #8"},
	} {
		err := run(t.Context(), row.args)
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
		if err != nil && strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: the error contains the key: %v", row.reason, err)
		}
	}
	if _, err := open("quay.test/app:v1"); err == nil || !strings.Contains(err.Error(), "want a digest") {
		t.Errorf("a tag was taken: %v", err)
	}
	if at, err := open("127.0.0.1:5000/app@sha256:" + strings.Repeat("a", 64)); err != nil || !at.PlainHTTP {
		t.Errorf("loopback: %v", err)
	}
	if at, err := open(image); err != nil || at.PlainHTTP {
		t.Errorf("without TLS: %v", err)
	}
}

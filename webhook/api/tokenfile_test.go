package api_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/api"
)

const (
	ciToken   = "ci-0123456789abcdef"
	nodeToken = "node-0123456789abcdef"
)

func writeTokens(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "# builders\n"+ciToken+",ci\n"+nodeToken+",node,7,\"nodes, readers\"\n", 0o440)
	file := testkit.Must(api.NewTokenFile(path, nil))(t)
	for _, row := range []struct {
		reason, token, user string
		groups              []string
	}{
		{"a token", ciToken, "ci", nil},
		{"one with groups, as Kubernetes writes them", nodeToken, "node", []string{"nodes", "readers"}},
		{"the beginning of one", ciToken[:len(ciToken)-1], "", nil},
		{"one and more", ciToken + "0", "", nil},
		{"a name", "ci", "", nil},
		{"nothing", "", "", nil},
	} {
		user, err := file.Authenticate(t.Context(), row.token)
		if user.Name != row.user || !slices.Equal(user.Groups, row.groups) || err != nil {
			t.Errorf("%s: %q, %v, %v", row.reason, user.Name, user.Groups, err)
		}
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	now := time.Unix(0, 0)
	writeTokens(t, path, ciToken+",ci\n", 0o600)
	file := testkit.Must(api.NewTokenFile(path, func() time.Time { return now }))(t)
	for _, row := range []struct {
		reason  string
		change  func()
		after   time.Duration
		user    string
		failing bool
	}{
		{"at first", func() {}, 0, "ci", false},
		{"a change within a second", func() { writeTokens(t, path, ciToken+",no\n", 0o600) }, 999 * time.Millisecond, "ci", false},
		{"a second later", func() {}, time.Millisecond, "no", false},
		{"another token", func() { writeTokens(t, path, nodeToken+",ci\n", 0o600) }, time.Second, "", false},
		{"back again", func() { writeTokens(t, path, ciToken+",ci\n", 0o600) }, time.Second, "ci", false},
		{"broken: lookups fail", func() { writeTokens(t, path, "broken", 0o600) }, time.Second, "", true},
		{"gone", func() { _ = os.Remove(path) }, time.Second, "", true},
		{"there again, as it was", func() { writeTokens(t, path, ciToken+",ci\n", 0o600) }, time.Second, "ci", false},
		{"for everybody's eyes", func() { writeTokens(t, path, ciToken+",ci\n", 0o644) }, time.Second, "", true},
	} {
		row.change()
		now = now.Add(row.after)
		user, err := file.Authenticate(t.Context(), ciToken)
		if user.Name != row.user || (err != nil) != row.failing {
			t.Errorf("%s: %q, %v", row.reason, user.Name, err)
		}
	}
}

func TestTokenFileRefuses(t *testing.T) {
	for _, row := range []struct {
		reason, content string
		mode            os.FileMode
		refused         bool
	}{
		{"the twin that is right", ciToken + ",ci\n", 0o600, false},
		{"readable by everybody", ciToken + ",ci\n", 0o604, true},
		{"writable by the group", ciToken + ",ci\n", 0o620, true},
		{"readable by the group", ciToken + ",ci\n", 0o640, false},
		{"empty", "", 0o600, true},
		{"only a comment", "# nobody\n", 0o600, true},
		{"a token without a name", ciToken + "\n", 0o600, true},
		{"an empty name", ciToken + ",\n", 0o600, true},
		{"a token that can be guessed", "secret,ci\n", 0o600, true},
		{"a token with a space", "ci 0123456789abcdef,ci\n", 0o600, true},
		{"the same token twice", ciToken + ",a\n" + ciToken + ",b\n", 0o600, true},
		{"five fields", ciToken + ",ci,7,a,b\n", 0o600, true},
		{"a quote that does not end", ciToken + ",\"ci\n", 0o600, true},
		{"too large", strings.Repeat("#", 300<<10), 0o600, true},
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		writeTokens(t, path, row.content, row.mode)
		_, err := api.NewTokenFile(path, nil)
		if (err != nil) != row.refused {
			t.Errorf("%s: %v", row.reason, err)
		}
		if err != nil && (strings.Contains(err.Error(), "0123456789") || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: the error contains a token, or no path: %v", row.reason, err)
		}
	}
	if _, err := api.NewTokenFile(t.TempDir(), nil); err == nil {
		t.Error("a folder is taken for a file")
	}
}

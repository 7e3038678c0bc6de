package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
)

// TestRetiredKeys: the setting is read as people write it, comes to the trust store, and is
// refused where it would mean nothing; and it is carried where settings are.
func TestRetiredKeys(t *testing.T) {
	const head, key = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n", "3712e0f9aa55e9463712e0f9aa55e9463712e0f9aa55e9463712e0f9aa55e946"
	c, err := config.Parse([]byte(head + "trust:\n  retiredKeys:\n    " + key + ": 2026-03-01T12:00:00Z\n"))
	if err != nil || !c.Trust.RetiredKeys[key].Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) {
		t.Fatalf("read as %v, %v", c.Trust.RetiredKeys, err)
	}
	if _, err := newTrust(c.Trust, nil); err != nil {
		t.Errorf("one that is right: %v", err)
	}
	if settings, lost := carried.Settings(c, carried.Given{}); len(lost) != 0 || !settings.Trust.RetiredKeys[key].Equal(c.Trust.RetiredKeys[key]) {
		t.Errorf("carried elsewhere are %v; reported is %q", settings.Trust.RetiredKeys, lost)
	}
	c.Trust.RetiredKeys = map[string]time.Time{key[:16]: time.Now()}
	if _, err := newTrust(c.Trust, nil); err == nil || !strings.Contains(err.Error(), "64 hexadecimal digits") {
		t.Errorf("the part that records show: %v", err)
	}
	if _, err := config.Parse([]byte(head + "trust: {retiredKeys: {" + key + ": tomorrow}}\n")); err == nil {
		t.Error("a time that is none is read")
	}
}

// TestRetiredIdentities: the setting is read, carried elsewhere, and refused where it would mean nothing.
func TestRetiredIdentities(t *testing.T) {
	const head = "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\ntrust:\n  retiredIdentities:\n  - "
	good := head + "{issuer: 'https://issuer.example', subject: 'https://git.example/shop/*', notAfter: 2026-03-01T12:00:00Z}\n"
	c, err := config.Parse([]byte(good))
	if err != nil || len(c.Trust.Identities()) != 1 || !c.Trust.Identities()[0].Identity.Match("https://issuer.example", []string{"https://git.example/shop/app"}) {
		t.Fatalf("read as %v, %v", c.Trust.RetiredIdentities, err)
	}
	if settings, lost := carried.Settings(c, carried.Given{}); len(lost) != 0 || len(settings.Trust.RetiredIdentities) != 1 {
		t.Errorf("carried elsewhere are %v; reported is %q", settings.Trust.RetiredIdentities, lost)
	}
	for _, row := range []struct{ reason, entry, want string }{
		{"one that is right", good, ""},
		{"no bound", head + "{issuer: a, subject: b}\n", "want notBefore or notAfter"},
		{"no subject", head + "{issuer: a, notAfter: 2026-03-01T12:00:00Z}\n", "want an issuer and a subject"},
		{"an end before the beginning", head + "{issuer: a, subject: b, notBefore: 2026-03-02T12:00:00Z, notAfter: 2026-03-01T12:00:00Z}\n", "is not before notAfter"},
	} {
		c, err := config.Parse([]byte(row.entry))
		if err == nil {
			_, err = newTrust(c.Trust, nil)
		}
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

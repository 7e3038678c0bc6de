package verify_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

func TestRetiredIdentities(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	identity := verify.Identity{Issuer: verify.Exactly("https://issuer.example"), Subject: verify.Wildcard("https://git.example/shop/*")}
	before, after := verify.RetiredIdentity{Identity: identity, NotAfter: noon}, verify.RetiredIdentity{Identity: identity, NotBefore: noon}
	const issuer, subject = "https://issuer.example", "https://git.example/shop/app"
	for _, c := range []struct {
		reason   string
		own      verify.Authority
		retired  []verify.RetiredIdentity
		issuer   string
		subjects []string
		at       time.Time
		want     verify.Code
	}{
		{"only before, before", verify.Authority{}, []verify.RetiredIdentity{before}, issuer, []string{subject}, noon, ""},
		{"only before, after", verify.Authority{}, []verify.RetiredIdentity{before}, issuer, []string{subject}, noon.Add(time.Second), verify.OutsideValidity},
		{"only after, after", verify.Authority{}, []verify.RetiredIdentity{after}, issuer, []string{subject}, noon, ""},
		{"only after, before", verify.Authority{}, []verify.RetiredIdentity{after}, issuer, []string{subject}, noon.Add(-time.Second), verify.OutsideValidity},
		{"no time", verify.Authority{}, []verify.RetiredIdentity{before}, issuer, []string{subject}, time.Time{}, verify.NoTimestamp},
		{"another subject", verify.Authority{}, []verify.RetiredIdentity{before}, issuer, []string{"https://git.example/other"}, noon.Add(time.Second), ""},
		{"another issuer", verify.Authority{}, []verify.RetiredIdentity{before}, "https://other.example", []string{subject}, noon.Add(time.Second), ""},
		{"one of two subjects", verify.Authority{}, []verify.RetiredIdentity{before}, issuer, []string{"a", subject}, noon.Add(time.Second), verify.OutsideValidity},
		{"two entries, the stricter", verify.Authority{}, []verify.RetiredIdentity{{Identity: identity, NotAfter: noon.Add(time.Hour)}, before}, issuer, []string{subject}, noon.Add(time.Second), verify.OutsideValidity},
		{"an own bound that is stricter", verify.Authority{NotAfter: noon.Add(-time.Hour)}, []verify.RetiredIdentity{before}, issuer, []string{subject}, noon, verify.OutsideValidity},
		{"two entries that exclude each other", verify.Authority{}, []verify.RetiredIdentity{before, {Identity: identity, NotBefore: noon.Add(time.Hour)}}, issuer, []string{subject}, noon, verify.OutsideValidity},
	} {
		c.own.RetiredIdentities = c.retired
		rejection := c.own.Within(c.issuer, c.subjects).Admits(c.at, nil)
		if (rejection == nil) != (c.want == "") || rejection != nil && rejection.Code != c.want {
			t.Errorf("%s: %v, want %q", c.reason, rejection, c.want)
		}
	}
}

func TestValidateRetired(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	identity := verify.Identity{Issuer: verify.Exactly("a"), Subject: verify.Exactly("b")}
	good := verify.RetiredIdentity{Identity: identity, NotBefore: noon, NotAfter: noon.Add(time.Hour)}
	for _, c := range []struct {
		reason string
		list   []verify.RetiredIdentity
		good   bool
	}{
		{"none", nil, true},
		{"both bounds", []verify.RetiredIdentity{good}, true},
		{"no bound", []verify.RetiredIdentity{{Identity: identity}}, false},
		{"no subject", []verify.RetiredIdentity{{Identity: verify.Identity{Issuer: identity.Issuer}, NotAfter: noon}}, false},
		{"no issuer", []verify.RetiredIdentity{{Identity: verify.Identity{Subject: identity.Subject}, NotAfter: noon}}, false},
		{"an end before the beginning", []verify.RetiredIdentity{{Identity: identity, NotBefore: noon, NotAfter: noon}}, false},
		{"one too many", make([]verify.RetiredIdentity, verify.MaxRetired+1), false},
	} {
		if err := verify.ValidateRetired(c.list); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

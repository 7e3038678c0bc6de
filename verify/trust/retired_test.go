package trust_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// TestRetired: a key that is retired is bounded in time, however a policy names it; so it
// is another authority than before, and no fact about the one is one about the other.
func TestRetired(t *testing.T) {
	lost, kept := ecdsaKey(t, elliptic.P256()).Public(), ecdsaKey(t, elliptic.P256()).Public()
	parsed, err := trust.NewPublicKey(lost, "")
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	options := trust.Options{
		KMS: &vault{key: lost}, Secrets: cluster{"ns/key/cosign.pub": publicPEM(t, lost), "ns/other/cosign.pub": publicPEM(t, kept)},
	}
	before := newStore(t, options).Snapshot()
	options.Retired = []trust.Retired{{Fingerprint: strings.ToUpper(parsed.Fingerprint), NotAfter: end}}
	after := newStore(t, options).Snapshot()
	for _, row := range []struct {
		reason string
		key    verify.Key
		own    time.Time // until when the policy believes it
		want   time.Time
	}{
		{"the key itself", verify.Key{Ref: string(publicPEM(t, lost))}, time.Time{}, end},
		{"the key, written with more than is read of it", verify.Key{PEM: longer(t, publicPEM(t, lost))}, time.Time{}, end},
		{"the key as it was looked up", verify.Key{PEM: publicPEM(t, lost)}, time.Time{}, end},
		{"in a Secret", verify.Key{Ref: "k8s://ns/key"}, time.Time{}, end},
		{"in a key management service", verify.Key{Ref: "awskms:///k"}, time.Time{}, end},
		{"a policy that ends earlier by itself", verify.Key{Ref: "awskms:///k"}, end.Add(-time.Hour), end.Add(-time.Hour)},
		{"a policy that ends later by itself", verify.Key{Ref: "awskms:///k"}, end.Add(time.Hour), end},
		{"another key", verify.Key{Ref: string(publicPEM(t, kept))}, time.Time{}, time.Time{}},
		{"another key in a Secret", verify.Key{Ref: "k8s://ns/other"}, time.Time{}, time.Time{}},
	} {
		authority := verify.Authority{Name: "a", Key: &row.key, NotAfter: row.own}
		got, err := after.Resolve(t.Context(), authority)
		if err != nil || !got.NotAfter.Equal(row.want) {
			t.Errorf("%s: believed until %s, %v, want %s", row.reason, got.NotAfter, err, row.want)
		}
		old, err := before.Resolve(t.Context(), authority)
		if err != nil || !old.NotAfter.Equal(row.own) {
			t.Errorf("%s: before, believed until %s, %v, want %s", row.reason, old.NotAfter, err, row.own)
		}
		one, errs := old.Hash()
		other, errs2 := got.Hash()
		if errs != nil || errs2 != nil || (one == other) != row.want.Equal(row.own) {
			t.Errorf("%s: the hashes are %s and %s (%v, %v)", row.reason, one, other, errs, errs2)
		}
	}
}

// TestRetiredCertificates: where a certificate names the key's owner, all retired keys are
// searched for in it, and none where none is retired.
func TestRetiredCertificates(t *testing.T) {
	lost, end := ecdsaKey(t, elliptic.P256()).Public(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	parsed, err := trust.NewPublicKey(lost, "")
	if err != nil {
		t.Fatal(err)
	}
	before := newStore(t, trust.Options{}).Snapshot()
	after := newStore(t, trust.Options{Retired: []trust.Retired{{Fingerprint: parsed.Fingerprint, NotAfter: end}}}).Snapshot()
	for _, authority := range []verify.Authority{
		{Name: "certificate", Certificate: &verify.Certificate{Chain: []byte("chain")}},
		{Name: "keyless", Keyless: &verify.Keyless{}},
		{Name: "notation", Notation: &verify.Notation{}},
	} {
		got, err := after.Resolve(t.Context(), authority)
		rejection := got.Admits(end.Add(time.Second), &x509.Certificate{PublicKey: lost})
		if err != nil || rejection == nil || rejection.Code != verify.OutsideValidity {
			t.Errorf("%s: %v, %v", authority.Name, rejection, err)
		}
		old, err := before.Resolve(t.Context(), authority)
		if rejection := old.Admits(end.Add(time.Second), &x509.Certificate{PublicKey: lost}); rejection != nil || err != nil {
			t.Errorf("%s, none is retired: %v, %v", authority.Name, rejection, err)
		}
		one, errs := old.Hash()
		other, errs2 := got.Hash()
		if errs != nil || errs2 != nil || one == other {
			t.Errorf("%s: the hashes are %s and %s (%v, %v)", authority.Name, one, other, errs, errs2)
		}
	}
}

// longer is a key with an element at the end that no reader looks at.
func longer(t *testing.T, text []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(text)
	if block.Bytes[0] != 0x30 || block.Bytes[1] > 0x7d {
		t.Fatal("it is no short sequence")
	}
	block.Bytes[1] += 2
	block.Bytes = append(block.Bytes, 0x05, 0x00)
	changed := pem.EncodeToMemory(block)
	if same, err := trust.ParsePublicKey(changed, ""); err != nil || string(same.PEM) != string(text) {
		t.Fatalf("it is another key, or none: %v", err)
	}
	return changed
}

// TestRetiredRefuses what names no key, or no time.
func TestRetiredRefuses(t *testing.T) {
	sum, now := strings.Repeat("ab", 32), time.Now()
	for reason, list := range map[string][]trust.Retired{
		"no fingerprint":             {{NotAfter: now}},
		"the part that records show": {{Fingerprint: sum[:16], NotAfter: now}},
		"no hexadecimal":             {{Fingerprint: strings.Repeat("x", 64), NotAfter: now}},
		"no time":                    {{Fingerprint: sum}},
		"twice":                      {{Fingerprint: sum, NotAfter: now}, {Fingerprint: strings.ToUpper(sum), NotAfter: now}},
		"too many":                   make([]trust.Retired, 1001),
	} {
		if _, err := trust.New(trust.Options{Retired: list}); err == nil {
			t.Errorf("%s: accepted", reason)
		}
	}
	if _, err := trust.New(trust.Options{Retired: []trust.Retired{{Fingerprint: sum, NotAfter: now}}}); err != nil {
		t.Errorf("one that is right: %v", err)
	}
}

package trust_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// TestEnds: the last of a part counts, and a part without an end has none.
func TestEnds(t *testing.T) {
	one, two := newSigstore("one"), newSigstore("two")
	var whole map[string]any
	if err := json.Unmarshal(one.TrustedRoot(two), &whole); err != nil {
		t.Fatal(err)
	}
	with := func(part string, ends ...string) []byte {
		list, _ := whole[part].([]any)
		for i := range list { // there may be more of them than ends
			end, period := ends[min(i, len(ends)-1)], map[string]any{"start": "2020-01-01T00:00:00Z"}
			if end != "" {
				period["end"] = end
			}
			entry := list[i].(map[string]any)
			if key, ok := entry["publicKey"].(map[string]any); ok {
				key["validFor"] = period
			} else {
				entry["validFor"] = period
			}
		}
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, row := range []struct {
		reason, part string
		of           trust.Part
		ends         []string
		want         time.Time
	}{
		{"the later one of two logs", "tlogs", trust.PartRekor, []string{"2021-01-01T00:00:00Z", "2022-01-01T00:00:00Z"}, at("2022-01-01T00:00:00Z")},
		{"in whatever order", "tlogs", trust.PartRekor, []string{"2022-01-01T00:00:00Z", "2021-01-01T00:00:00Z"}, at("2022-01-01T00:00:00Z")},
		{"one has no end", "tlogs", trust.PartRekor, []string{"", "2021-01-01T00:00:00Z"}, time.Time{}},
		{"of logs of certificates", "ctlogs", trust.PartCT, []string{"2021-01-01T00:00:00Z", "2021-02-01T00:00:00Z"}, at("2021-02-01T00:00:00Z")},
		{"an authority ends before its certificate", "certificateAuthorities", trust.PartFulcio, []string{"2021-01-01T00:00:00Z", "2021-02-01T00:00:00Z"}, at("2021-02-01T00:00:00Z")},
		{"of time stamps", "timestampAuthorities", trust.PartTimestamp, []string{"2021-01-01T00:00:00Z", "2021-02-01T00:00:00Z"}, at("2021-02-01T00:00:00Z")},
	} {
		ends, err := newStore(t, trust.Options{TrustedRoot: with(row.part, row.ends...)}).Snapshot().Ends()
		if err != nil || !ends[row.of].Equal(row.want) {
			t.Errorf("%s: %s, %v, want %s", row.reason, ends[row.of], err, row.want)
		}
	}

	ends, err := newStore(t, trust.Options{Private: trust.Private{Fulcio: one.CA.ChainPEM(), Rekor: one.Rekor.PublicPEM()}}).Snapshot().Ends()
	if err != nil {
		t.Fatal(err)
	}
	if end, known := ends[trust.PartFulcio]; !known || end.IsZero() {
		t.Error("the certificate of a private authority has no end")
	}
	if _, known := ends[trust.PartCT]; known {
		t.Error("material that the root lacks has an end")
	}
	if ends, err := newStore(t, trust.Options{TrustedRoot: []byte("{")}).Snapshot().Ends(); err == nil {
		t.Errorf("a root that is broken ends: %v", ends)
	}
	public, err := newStore(t, trust.Options{}).Snapshot().Ends()
	if err != nil || public[trust.PartFulcio].Year() < 2030 || !public[trust.PartRekor].IsZero() {
		t.Errorf("the public-good root ends: %v, %v", public, err)
	}
}

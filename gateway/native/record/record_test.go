package record_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

func TestStates(t *testing.T) {
	const id = "ValidatingPolicy/no-host-paths"
	states := record.States{
		id:                            {Hash: "ab12", Native: true, Objects: "ef56"},
		"ClusterPolicy/require-probe": {Hash: "cd34", Reason: strings.Repeat("an exception names it, ", 20)},
	}
	data, err := states.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := record.DecodeStates(data)
	if err != nil {
		t.Fatal(err)
	}
	if reason := read["ClusterPolicy/require-probe"].Reason; len(reason) > 256+len("...") || !strings.HasPrefix(reason, "an exception") {
		t.Errorf("the reason has %d bytes: %s", len(reason), reason)
	}
	for _, c := range []struct {
		id, hash string
		want     bool
		reason   string
	}{
		{id, "ab12", true, "the version that is native"},
		{id, "ab13", false, "another version"},
		{id, "", false, "a policy without a hash"},
		{"ValidatingPolicy/other", "ab12", false, "another policy"},
		{"ClusterPolicy/require-probe", "cd34", false, "it stays in the webhook"},
		{"ClusterPolicy/none", "", false, "neither"},
	} {
		if got := read.Enforces(c.id, c.hash); got != c.want {
			t.Errorf("Enforces(%s, %s) = %t: %s", c.id, c.hash, got, c.reason)
		}
	}
}

func TestCoverage(t *testing.T) {
	coverage := record.Coverage{States: "17", Policies: map[string]string{"Policy/team/one": "ab12"}}
	data, err := coverage.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := record.DecodeCoverage(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		states, id, hash string
		want             bool
		reason           string
	}{
		{"17", "Policy/team/one", "ab12", true, "what the webhooks hold"},
		{"18", "Policy/team/one", "ab12", false, "the states changed since"},
		{"", "Policy/team/one", "ab12", false, "no states"},
		{"17", "Policy/team/one", "cd34", false, "another version"},
		{"17", "Policy/team/two", "", false, "another policy, without a hash"},
	} {
		if got := read.Covers(c.states, c.id, c.hash); got != c.want {
			t.Errorf("Covers(%s, %s, %s) = %t: %s", c.states, c.id, c.hash, got, c.reason)
		}
	}
	if _, err := record.DecodeCoverage(map[string]string{record.Key: `{"states": "17", "policy": {}}`}); err == nil {
		t.Error("an unknown field was read")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ data, reason string }{
		{`{"a":{"hash":"1","native":true,"objects":"o","reason":"r"}}`, "both sides enforce"},
		{`{"a":{"hash":"1","native":false}}`, "no reason"},
		{`{"a":{"hash":"1","native":true}}`, "no objects"},
		{`{"a":{"native":true,"objects":"o"}}`, "no hash"},
		{`{"a":{"hash":"1","native":true,"objects":"o"},"a":{"hash":"2","native":true,"objects":"o"}}`, "one policy twice"},
		{`{"a":{"hash":"1","native":true,"objects":"o","more":1}}`, "an unknown field"},
		{`{"a":{"hash":"1","native":"yes"}}`, "a text in place of a boolean"},
		{`{`, "no JSON"},
		{`{"a":"` + strings.Repeat("1", record.MaxBytes) + `"}`, "past the bound"},
	} {
		if states, err := record.DecodeStates(map[string]string{record.Key: c.data}); err == nil || len(states) > 0 {
			t.Errorf("%.80s was read: %s", c.data, c.reason)
		}
	}
	if _, err := record.DecodeStates(nil); err == nil {
		t.Error("a ConfigMap without data was read")
	}
	large := record.Coverage{States: strings.Repeat("1", record.MaxBytes)}
	if _, err := large.Encode(); err == nil {
		t.Error("a record past the bound was written")
	}
}

func FuzzDecodeStates(f *testing.F) {
	f.Add(`{"ValidatingPolicy/one":{"hash":"1","native":true,"objects":"o"}}`)
	f.Add(`{"a":{"hash":"1","native":false,"reason":"waits"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		states, err := record.DecodeStates(map[string]string{record.Key: text})
		if err != nil {
			return
		}
		data, err := states.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.DecodeStates(data)
		if err != nil || len(again) != len(states) {
			t.Fatalf("%v, %v: written and read again: %v", states, err, again)
		}
	})
}

// TestEqual: states are equal to the record that is read, whatever the length of a reason.
func TestEqual(t *testing.T) {
	for length := 240; length < 270; length++ {
		for _, end := range []string{"a", "é", "..."} {
			states := record.States{"p": {Hash: "h", Reason: strings.Repeat("a", length) + end}}
			for range 3 {
				data, err := states.Encode()
				if err != nil {
					t.Fatal(err)
				}
				read, err := record.DecodeStates(data)
				if err != nil || !states.Equal(read) || len(read["p"].Reason) > 256 {
					t.Fatalf("%d, %q: %+v, %v", length, end, read, err)
				}
				states = read
			}
		}
	}
	one := record.States{"p": {Hash: "h", Reason: "one"}}
	for reason, other := range map[string]record.States{
		"another reason": {"p": {Hash: "h", Reason: "other"}}, "another version": {"p": {Hash: "g", Reason: "one"}}, "none": {},
		"native": {"p": {Hash: "h", Native: true, Objects: "o"}},
	} {
		if one.Equal(other) {
			t.Errorf("%s: equal", reason)
		}
	}
}

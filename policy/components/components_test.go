package components_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/components"
	"github.com/quaymaster/quaymaster/verify"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// fact is a bill of materials of a signer, as old as ago by the clock of a source.
func fact(signer string, source verify.TimeSource, ago time.Duration, names ...string) verify.Fact {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q}`, name))
	}
	predicate := `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[` + strings.Join(list, ",") + `]}`
	f := verify.Fact{
		Statement: &attest.Statement{Predicate: []byte(predicate)}, Signer: verify.Signer{KeyFingerprint: signer},
		TimeSource: source, Signatures: []string{signer + predicate},
	}
	if source != "" {
		f.SignedAt = noon.Add(-ago)
	}
	return f
}

func TestRead(t *testing.T) {
	day, bounds := 24*time.Hour, age.Bounds{Maximum: 72 * time.Hour, At: noon}
	old, fresh := fact("a", verify.LogTime, 4*day, "old"), fact("a", verify.LogTime, day, "fresh", "more")
	other, untimed := fact("b", verify.StampTime, 2*day, "other"), fact("a", "", 0, "untimed")
	foreign := verify.Fact{Statement: &attest.Statement{Predicate: []byte(`{}`)}}
	large := fact("c", verify.LogTime, day, make([]string, document.MaxEntries-1)...)
	large.Statement.Predicate = bytes.ReplaceAll(large.Statement.Predicate, []byte(`""`), []byte(`"p"`))
	for _, c := range []struct {
		reason string
		bills  [][]verify.Fact
		age    age.Bounds
		want   string
		err    string
	}{
		{"one", [][]verify.Fact{{fresh}}, bounds, "fresh more", ""},
		{"a later one of the signer replaces an earlier one", [][]verify.Fact{{old, fresh}}, age.Bounds{}, "fresh more", ""},
		{"those of two signers count together", [][]verify.Fact{{fresh}, {other}}, bounds, "fresh more other", ""},
		{"an old one of another signer does not count", [][]verify.Fact{{old}, {other}}, bounds, "other", ""},
		{"one by two attestors counts once", [][]verify.Fact{{fresh}, {fresh}}, bounds, "fresh more", ""},
		{"those without a time count together", [][]verify.Fact{{untimed, fact("a", "", 0, "more")}}, age.Bounds{}, "untimed more", ""},
		{"the signer's own time is none", [][]verify.Fact{{fact("a", verify.OwnTime, day, "own"), untimed}}, age.Bounds{}, "own untimed", ""},
		{"an old one", [][]verify.Fact{{old}}, bounds, "", "too-old"},
		{"one without a time", [][]verify.Fact{{untimed}}, bounds, "", age.ErrUnknown.Error()},
		{"none", nil, bounds, "", components.ErrNone.Error()},
		{"a signature alone", [][]verify.Fact{{{Signer: verify.Signer{KeyFingerprint: "a"}}}}, age.Bounds{}, "", components.ErrNone.Error()},
		{"one of another form", [][]verify.Fact{{fresh}, {foreign}}, age.Bounds{}, "", "no JSON of SPDX"},
		{"more packages together than one may have", [][]verify.Fact{{fresh}, {large}}, bounds, "", "MaxEntries"},
	} {
		for name, keeps := range map[string]*components.Cache{"without a cache": nil, "with a cache": testkit.Must(components.NewCache())(t)} {
			read, err := keeps.Read(c.bills, c.age)
			var got []string
			for _, p := range read.Packages {
				got = append(got, p.Name)
			}
			if strings.Join(got, " ") != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s, %s: %q, %v", c.reason, name, got, err)
			}
		}
	}
	read, err := (*components.Cache)(nil).Read([][]verify.Fact{{fresh}, {other}}, bounds)
	if err != nil || len(read.Bills) != 2 {
		t.Errorf("%d bills, %v; want those of both signers", len(read.Bills), err)
	}
	if _, ok := errors.AsType[*verify.Rejection](func() error { _, err := (*components.Cache)(nil).Read([][]verify.Fact{{old}}, bounds); return err }()); !ok {
		t.Error("an old one is no rejection")
	}
}

// TestCache: a statement is parsed once, and so is one that is no bill of materials.
func TestCache(t *testing.T) {
	keeps := testkit.Must(components.NewCache())(t)
	one, same := fact("a", verify.LogTime, 0, "p"), fact("a", verify.LogTime, 0, "p")
	first := testkit.Must(keeps.Parse(one.Statement))(t)
	if again := testkit.Must(keeps.Parse(one.Statement))(t); again != first {
		t.Error("the same statement is parsed twice")
	}
	if other := testkit.Must(keeps.Parse(same.Statement))(t); other == first {
		t.Error("another statement is taken for the first")
	}
	broken := &attest.Statement{Predicate: []byte(`{}`)}
	_, err := keeps.Parse(broken)
	if _, again := keeps.Parse(broken); err == nil || err != again { //nolint:errorlint // the very same error
		t.Errorf("the statement without a bill is parsed twice: %v, %v", err, again)
	}
	if _, err := keeps.Parse(&attest.Statement{Predicate: make([]byte, document.MaxBytes+1)}); err == nil || !strings.Contains(err.Error(), "12582912") {
		t.Errorf("a document over the bound: %v", err)
	}
}

// atBound is a document with as many packages and bytes as the bounds permit.
func atBound() []byte {
	var b bytes.Buffer
	b.WriteString(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[`)
	for i := range document.MaxEntries {
		if i > 0 {
			b.WriteString(",")
		}
		head := fmt.Sprintf(`{"type":"library","name":"package-%05d","version":"1.%d.0","purl":"pkg:npm/package-%05d@1.%d.0?arch=amd64",`+
			`"licenses":[{"expression":"MIT OR (Apache-2.0 AND BSD-%d-Clause)"}],"properties":[`, i, i, i, i, i%2+2)
		b.WriteString(head)
		for n := 0; b.Len() < (i+1)*(document.MaxBytes-200)/document.MaxEntries-100; n++ {
			if n > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `{"name":"syft:location:%d:path","value":"/usr/lib/package/%d"}`, n, i)
		}
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return append(b.Bytes(), bytes.Repeat([]byte(" "), document.MaxBytes-b.Len())...)
}

// TestLive: a parsed document at the bound takes at most 64 MiB, its text included.
func TestLive(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc) //nolint:gosec // no heap has so many
	}
	before := heap()
	statement := &attest.Statement{Predicate: atBound()}
	keeps := testkit.Must(components.NewCache())(t)
	bill := testkit.Must(keeps.Parse(statement))(t)
	used := heap() - before
	if len(bill.Packages) != document.MaxEntries || len(statement.Predicate) != document.MaxBytes {
		t.Fatalf("%d packages in %d bytes", len(bill.Packages), len(statement.Predicate))
	}
	t.Logf("%.1f MiB", float64(used)/(1<<20))
	if used > 64<<20 {
		t.Errorf("%d bytes live after parsing, want at most 64 MiB", used)
	}
	runtime.KeepAlive(keeps)
	runtime.KeepAlive(bill)
}

// BenchmarkParse parses a document at the bound; "statement" has the check and the split of the statement, which
// verification does, too.
func BenchmarkParse(b *testing.B) {
	predicate := atBound()
	whole := slices.Concat([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://cyclonedx.org/bom","subject":[{"digest":{"sha256":"`+
		strings.Repeat("0", 64)+`"}}],"predicate":`), predicate, []byte("}"))
	b.Run("statement", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := attest.ParseStatement(whole); err != nil {
				b.Fatal(err)
			}
		}
	})
	statement := &attest.Statement{Predicate: json.RawMessage(predicate)}
	for name, keeps := range map[string]*components.Cache{"cold": nil, "warm": testkit.Must(components.NewCache())(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keeps.Read([][]verify.Fact{{{Statement: statement}}}, age.Bounds{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package decisionlog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// pack compresses a file, as the journal does.
func pack(t testing.TB, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Close(), os.WriteFile(path+decisionlog.Compressed, packed.Bytes(), 0o600), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	for _, row := range []struct {
		reason string
		packed bool
		from   uint64
		first  uint64
		count  int
	}{
		{"all of it", false, 1, 1, 17},
		{"zero is the beginning, too", false, 0, 1, 17},
		{"from the middle of a file", false, 9, 9, 9},
		{"from the second file", false, 12, 12, 6},
		{"beyond its end", false, 18, 0, 0},
		{"all of it, with a compressed file", true, 1, 1, 17},
		{"from the middle of a compressed file", true, 9, 9, 9},
	} {
		t.Run(row.reason, func(t *testing.T) {
			w := write(t)
			if row.packed {
				pack(t, w.files[0])
			}
			var seqs []uint64
			for line, err := range decisionlog.Read(w.folder, row.from) {
				if err != nil {
					t.Fatal(err)
				}
				seqs = append(seqs, line.Seq)
			}
			if len(seqs) != row.count || row.count > 0 && seqs[0] != row.first || !slices.IsSorted(seqs) {
				t.Errorf("got %v", seqs)
			}
			if _, err := decisionlog.Verify(w.folder, decisionlog.VerifyOptions{Keys: w.keys}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadBack: it is Read, from the other end.
func TestReadBack(t *testing.T) {
	for _, packed := range []bool{false, true} {
		w := write(t)
		large(t, w.files[1])
		if packed {
			pack(t, w.files[0])
		}
		var forwards, back [][]byte
		for line, err := range decisionlog.Read(w.folder, 1) {
			if err != nil {
				t.Fatal(err)
			}
			forwards = append(forwards, line.Raw)
		}
		for line, err := range decisionlog.ReadBack(w.folder) {
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, line.Raw)
		}
		slices.Reverse(back)
		if len(forwards) != 17+3000 || !slices.EqualFunc(forwards, back, bytes.Equal) {
			t.Errorf("packed %t: %d lines forwards, %d back, or they differ", packed, len(forwards), len(back))
		}
		for line, err := range decisionlog.ReadBack(w.folder) {
			if err != nil || len(line.Raw) == 0 {
				t.Error(err)
			}
			break // reading may stop early
		}
	}
}

// large adds lines of many lengths, so that blocks end everywhere in them.
func large(t *testing.T, path string) {
	t.Helper()
	all := lines(t, path)
	last, err := decisionlog.ParseLine(all[len(all)-1])
	if err != nil {
		t.Fatal(err)
	}
	chain, err := decisionlog.NewChain(last.Replica, decisionlog.Position{Seq: last.Seq - 1}.After(last.Raw))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i := range 3000 {
		d := decisionlog.Decision{User: strings.Repeat("x", i)}
		text = appended(t, chain, text, decisionlog.Entry{Kind: decisionlog.KindDecision, Time: noon, Decision: &d})
	}
	rewrite(t, path, append(all, bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))...))
}

// TestTail: lines are seen as they are written, whole ones only, and across files.
func TestTail(t *testing.T) {
	w := write(t)
	all := append(lines(t, w.files[0]), lines(t, w.files[1])...)
	for _, name := range w.files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	tail := decisionlog.NewTail(w.folder, 1)
	t.Cleanup(func() { _ = tail.Close() })
	next := func(want uint64) {
		t.Helper()
		line, ok, err := tail.Next()
		if err != nil || ok != (want > 0) || ok && line.Seq != want {
			t.Fatalf("got %d, %t, %v; want %d", line.Seq, ok, err, want)
		}
	}
	next(0)
	rewrite(t, w.files[0], all[:3])
	next(1)
	next(2)
	next(3)
	next(0)
	text := append(bytes.Join(all[:4], []byte("\n")), '\n')
	torn := append(bytes.Clone(text), all[4][:50]...)
	if err := os.WriteFile(w.files[0], torn, 0o600); err != nil {
		t.Fatal(err)
	}
	next(4)
	next(0) // half of number 5
	rewrite(t, w.files[0], all[:11])
	next(5)
	rewrite(t, w.files[1], all[11:])
	for want := range uint64(12) {
		next(want + 6)
	}
	next(0)
}

func TestReadNamesTheBrokenLine(t *testing.T) {
	w := write(t)
	all := lines(t, w.files[0])
	all[2] = []byte("{}")
	rewrite(t, w.files[0], all)
	read := 0
	var found error
	for _, err := range decisionlog.Read(w.folder, 1) {
		if err != nil {
			found = err
			break
		}
		read++
	}
	broken, ok := errors.AsType[*decisionlog.BrokenError](found)
	if !ok || broken.Line != 3 || broken.Segment != filepath.Base(w.files[0]) || read != 2 {
		t.Errorf("after %d lines: %v", read, found)
	}
}

// TestDecisions: one line for an image, one for its object, each with the user, the object,
// the policy and the reason.
func TestDecisions(t *testing.T) {
	got := decisionlog.Decisions(deployed(t, 1))
	if len(got) != 2 {
		t.Fatalf("got %d lines", len(got))
	}
	of := got[0]
	if of.User != "jo@acme.example" || of.UID != "request-1" || of.Object.Name != "web-1" || of.Image == nil || of.Image.Written != "registry.example/acme/web:1.4" ||
		!strings.HasPrefix(of.Image.Digest, "sha256:") || of.Result != "allow" || len(of.Rules) != 1 {
		t.Errorf("the image: %+v", of)
	}
	if r := of.Rules[0]; r.Policy != "ClusterPolicy/signed" || r.Hash == "" || len(r.Proofs) != 1 || !strings.Contains(r.Proofs[0].Where, "registry.example/acme/web@sha256:") {
		t.Errorf("its rule: %+v", of.Rules[0])
	}
	if object := got[1]; object.Image != nil || len(object.Rules) != 1 || object.Rules[0].Result != policy.Pass {
		t.Errorf("the object: %+v", object)
	}

	alone := deployed(t, 1)
	alone.Outcome.Rules = nil
	if got := decisionlog.Decisions(alone); len(got) != 1 || got[0].Image == nil {
		t.Errorf("no rule matches the object, and it has %d lines", len(got))
	}
	bare := report.Decided{Occasion: report.Occasion{Undecided: "queue-full"}, About: report.Resource{Kind: "Pod", Name: "web"}}
	if got := decisionlog.Decisions(bare); len(got) != 1 || got[0].Undecided != "queue-full" || got[0].Object.Name != "web" || got[0].Result != "" {
		t.Errorf("undecided: %+v", got)
	}
}

// TestLinesAreBounded: a client chooses names, and must not fill a disk with one.
func TestLinesAreBounded(t *testing.T) {
	d := deployed(t, 1)
	d.Occasion.User = strings.Repeat("ü", 1<<20)
	d.Occasion.Groups = slices.Repeat([]string{strings.Repeat("g", 1<<16)}, 5000)
	d.Outcome.Rules = slices.Repeat(d.Outcome.Rules, 10_000)
	d.Outcome.Subject.Name = strings.Repeat("\x00", 1<<20)
	chain, err := decisionlog.NewChain("a", decisionlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range decisionlog.Decisions(d) {
		if of.Omitted == 0 {
			t.Error("something is missing, and the line does not say so")
		}
		text := appended(t, chain, nil, decisionlog.Entry{Kind: decisionlog.KindDecision, Decision: &of})
		if len(text) > 1<<20 {
			t.Errorf("a line of %d bytes", len(text))
		}
		if _, err := decisionlog.ParseLine(bytes.TrimSuffix(text, []byte("\n"))); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	w := write(f)
	for _, raw := range lines(f, w.files[0]) {
		f.Add(raw)
	}
	f.Add([]byte(`{"v":1,"kind":"checkpoint","checkpoint":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		folder := t.TempDir()
		path := filepath.Join(folder, decisionlog.SegmentName(1))
		if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = decisionlog.Verify(folder, decisionlog.VerifyOptions{Keys: w.keys})
		for _, err := range decisionlog.Read(folder, 0) {
			_ = err
		}
		for _, err := range decisionlog.ReadBack(folder) {
			_ = err
		}
		if s, err := decisionlog.Segments(folder); err == nil && len(s) > 0 {
			if seen, err := decisionlog.Look(s[0]); err == nil && seen.End > int64(len(raw))+1 {
				t.Errorf("it ends behind its end: %+v", seen)
			}
		}
	})
}

package decisionlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// The sample log: number 1 opens file 0; 2 to 5 are decisions (an image and its object,
// twice), 6 a checkpoint, 7 to 10 decisions, 11 a checkpoint. Number 12 opens file 1, 13
// to 16 are decisions, 17 is the checkpoint that closes it.
func TestVerifyAccepts(t *testing.T) {
	w := write(t)
	got, err := decisionlog.Verify(w.folder, decisionlog.VerifyOptions{Keys: w.keys})
	if err != nil {
		t.Fatal(err)
	}
	if got.First != 1 || got.Last != 17 || got.Lines != 17 || got.Decisions != 12 || got.Checkpoints != 3 || got.Segments != 2 || got.Unsigned != 0 || !got.Closed {
		t.Errorf("got %+v", got)
	}
	if !slices.Equal(got.Signers, []string{w.key.ID()}) || got.Replica != "replica-a" {
		t.Errorf("got %+v", got)
	}
}

// forge changes a member of a line, and puts it back in the form in which lines are
// written.
func forge(t *testing.T, raw []byte, change func(*decisionlog.Entry)) []byte {
	t.Helper()
	line, err := decisionlog.ParseLine(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(&line.Entry)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line.Entry); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// relink sets the hashes of the lines from one on to those of the lines before, as
// an attacker without the key would.
func relink(t *testing.T, all [][]byte, from int) [][]byte {
	t.Helper()
	for i := from; i < len(all); i++ {
		before, err := decisionlog.ParseLine(all[i-1])
		if err != nil {
			t.Fatal(err)
		}
		at := decisionlog.Position{Seq: before.Seq - 1}.After(all[i-1])
		all[i] = forge(t, all[i], func(e *decisionlog.Entry) {
			chain, err := decisionlog.NewChain(e.Replica, at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := chain.Append(nil, e); err != nil {
				t.Fatal(err)
			}
		})
	}
	return all
}

func TestVerifyNamesTheFirstBrokenLink(t *testing.T) {
	other, _ := keyOf(t)
	for _, row := range []struct {
		reason string
		tamper func(t *testing.T, w written)
		file   int // -1: it is about no file
		line   int
		says   string
	}{
		{"a byte of a decision is changed", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			all[3] = bytes.Replace(all[3], []byte("jo@acme"), []byte("mo@acme"), 1)
			rewrite(t, w.files[0], all)
		}, 0, 5, "the hash of the line before it: expected"},
		{"a line is removed", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			rewrite(t, w.files[0], slices.Delete(all, 7, 8))
		}, 0, 8, "the hash of the line before it"},
		{"a line is removed and the numbers are put right", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			rewrite(t, w.files[0], relink(t, slices.Delete(all, 2, 3), 2))
		}, 0, 5, "the checkpoint's signature is not that of its key"},
		{"a line is put in", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			rewrite(t, w.files[0], slices.Insert(all, 8, all[7]))
		}, 0, 9, "the hash of the line before it"},
		{"a line is put in, with a hash and a number that fit", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			rewrite(t, w.files[0], append(relink(t, slices.Insert(slices.Clone(all[:9]), 8, all[7]), 8), all[8:]...))
		}, 0, 11, "the hash of the line before it"},
		{"two lines are swapped", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			all[2], all[3] = all[3], all[2]
			rewrite(t, w.files[0], all)
		}, 0, 3, "the hash of the line before it"},
		{"a number is changed", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			all[3] = forge(t, all[3], func(e *decisionlog.Entry) { e.Seq = 40 })
			rewrite(t, w.files[0], all)
		}, 0, 4, "the number of the line: expected 4, found 40"},
		{"the first file is cut off", func(t *testing.T, w written) {
			rewrite(t, w.files[0], lines(t, w.files[0])[:8])
		}, 1, 1, "the hash of the line before it"},
		{"a line is cut off in its middle", func(t *testing.T, w written) {
			text, err := os.ReadFile(w.files[1])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.files[1], text[:len(text)-20], 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 6, "the line is not whole"},
		{"a line is no line", func(t *testing.T, w written) {
			all := lines(t, w.files[0])
			all[4] = []byte("null")
			rewrite(t, w.files[0], all)
		}, 0, 5, "version 0"},
		{"the first file is removed", func(t *testing.T, w written) {
			if err := os.Remove(w.files[0]); err != nil {
				t.Fatal(err)
			}
		}, 1, 1, "the log begins later than the end of its removed lines: expected number 1, found number 12"},
		{"a file is empty", func(t *testing.T, w written) { rewrite(t, w.files[0], nil) }, 0, 0, "there is no line in it"},
		{"a checkpoint is copied to the end", func(t *testing.T, w written) {
			rewrite(t, w.files[1], append(lines(t, w.files[1]), lines(t, w.files[0])[5]))
		}, 1, 7, "the hash of the line before it"},
		{"a checkpoint is copied to the end, with a hash and a number that fit", func(t *testing.T, w written) {
			all := append(lines(t, w.files[1]), lines(t, w.files[0])[5])
			rewrite(t, w.files[1], relink(t, all, len(all)-1))
		}, 1, 7, "the checkpoint's signature is not that of its key"},
		{"a checkpoint is signed with another key", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			rewrite(t, w.files[1], append(all[:len(all)-1], signedBy(t, all, other)))
		}, 1, 6, "a key that is not in --key: expected " /* the ID */},
		{"a checkpoint is signed with another key, and names the right one", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			lie := forge(t, signedBy(t, all, other), func(e *decisionlog.Entry) { e.Checkpoint.Key = w.key.ID() })
			rewrite(t, w.files[1], append(all[:len(all)-1], lie))
		}, 1, 6, "the checkpoint's signature is not that of its key"},
		{"the last checkpoint has more than the signed text", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			all[5] = bytes.Replace(all[5], []byte(`{"v":2,`), []byte(`{"v":2,"note":"all is well",`), 1)
			rewrite(t, w.files[1], all)
		}, 1, 6, "the checkpoint has content that is not signed"},
		{"the end is cut off, behind the copy of the last checkpoint", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			rewrite(t, filepath.Join(w.folder, decisionlog.HeadName), all[5:])
			rewrite(t, w.files[1], all[:3])
		}, -1, 0, "the log ends at number 14, and line number 17 was seen elsewhere"},
		{"all is written anew without checkpoints", func(t *testing.T, w written) {
			unsigned := slices.DeleteFunc(lines(t, w.files[0]), func(raw []byte) bool { return bytes.Contains(raw, []byte(`"kind":"checkpoint"`)) })
			rewrite(t, w.files[0], relink(t, unsigned, 1))
			if err := os.Remove(w.files[1]); err != nil {
				t.Fatal(err)
			}
		}, -1, 0, "no checkpoint in it"},
		{"it is another log's file", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			all[0] = forge(t, all[0], func(e *decisionlog.Entry) { e.Open.Chain = "c2" })
			rewrite(t, w.files[1], all)
		}, 1, 1, "the name of the log: expected c1, found c2"},
		{"another replica's name", func(t *testing.T, w written) {
			all := lines(t, w.files[1])
			all[2] = forge(t, all[2], func(e *decisionlog.Entry) { e.Replica = "replica-b" })
			rewrite(t, w.files[1], relink(t, all, 3))
		}, 1, 3, "the replica that writes it"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			w := write(t)
			if _, err := decisionlog.Verify(w.folder, decisionlog.VerifyOptions{Keys: w.keys}); err != nil {
				t.Fatal("before: ", err)
			}
			row.tamper(t, w)
			_, err := decisionlog.Verify(w.folder, decisionlog.VerifyOptions{Keys: w.keys})
			broken, ok := errors.AsType[*decisionlog.BrokenError](err)
			if !ok || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got %v, want %q", err, row.says)
			}
			want := ""
			if row.file >= 0 {
				want = filepath.Base(w.files[row.file])
			}
			if broken.Segment != want || broken.Line != row.line {
				t.Errorf("found at %s, line %d; want %s, line %d: %v", broken.Segment, broken.Line, want, row.line, err)
			}
		})
	}
}

// signedBy is the last line, signed by a key.
func signedBy(t *testing.T, all [][]byte, key *decisionlog.Key) []byte {
	t.Helper()
	before, err := decisionlog.ParseLine(all[len(all)-2])
	if err != nil {
		t.Fatal(err)
	}
	chain, err := decisionlog.NewChain(before.Replica, decisionlog.Position{Seq: before.Seq - 1}.After(before.Raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := chain.AppendCheckpoint(nil, "c1", noon, true, key)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// TestAnchors: lines seen elsewhere reveal an end that was cut off at a checkpoint,
// and a log that was rewritten with the key.
func TestAnchors(t *testing.T) {
	w := write(t)
	all := lines(t, w.files[1])
	last, middle := all[5], lines(t, w.files[0])[3]
	verified := func(anchors ...[]byte) error {
		_, err := decisionlog.Verify(w.folder, decisionlog.VerifyOptions{Keys: w.keys, Anchors: anchors})
		return err
	}
	if err := verified(middle, last); err != nil {
		t.Error("lines of the log: ", err)
	}
	if err := verified(forge(t, middle, func(e *decisionlog.Entry) { e.Decision.User = "mo" })); err == nil || !strings.Contains(err.Error(), "another line was seen under its number") {
		t.Errorf("another line was seen: %v", err)
	}
	if err := verified(last, forge(t, last, func(e *decisionlog.Entry) { e.Checkpoint.Closed = false })); err == nil || !strings.Contains(err.Error(), "of one log") {
		t.Errorf("two lines of one number: %v", err)
	}
	if err := os.Remove(w.files[1]); err != nil { // it ends with a checkpoint still
		t.Fatal(err)
	}
	if err := verified(); err != nil {
		t.Error("without anchors: ", err)
	}
	if err := verified(last); err == nil || !strings.Contains(err.Error(), "its end was cut off") {
		t.Errorf("the end is cut off: %v", err)
	}
}

// TestPruned: a log with a record of the removal of its first file is whole without it, if
// that record is signed: an attacker may add a line as well.
func TestPruned(t *testing.T) {
	for _, row := range []struct {
		reason      string
		signed, key bool
		says        string
	}{
		{"it is signed", true, true, ""},
		{"it is not, and no key is given", false, false, ""},
		{"it is not", false, true, "the log begins later than the end of its removed lines: expected number 1, found number 12"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			w := write(t)
			all := lines(t, w.files[1])
			before, err := decisionlog.ParseLine(all[5])
			if err != nil {
				t.Fatal(err)
			}
			chain, err := decisionlog.NewChain(before.Replica, decisionlog.Position{Seq: before.Seq - 1}.After(before.Raw))
			if err != nil {
				t.Fatal(err)
			}
			text := appended(t, chain, nil, decisionlog.Entry{Kind: decisionlog.KindPruned, Time: noon, Pruned: &decisionlog.Pruned{Segment: filepath.Base(w.files[0]), Through: 11, Why: "size"}})
			if row.signed {
				text, err = chain.AppendCheckpoint(text, "c1", noon, false, w.key)
				if err != nil {
					t.Fatal(err)
				}
			}
			rewrite(t, w.files[1], append(all, bytes.TrimSuffix(text, []byte("\n"))))
			if err := os.Remove(w.files[0]); err != nil {
				t.Fatal(err)
			}
			var o decisionlog.VerifyOptions
			if row.key {
				o.Keys = w.keys
			}
			got, err := decisionlog.Verify(w.folder, o)
			if row.says != "" {
				if err == nil || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %+v, %v, want %q", got, err, row.says)
				}
				return
			}
			if err != nil || got.First != 12 || got.PrunedThrough != 11 || (got.Unsigned == 0) != row.signed || got.Closed {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestVerifyFile: one file alone begins where it begins.
func TestVerifyFile(t *testing.T) {
	w := write(t)
	got, err := decisionlog.VerifyFile(w.files[1], decisionlog.VerifyOptions{Keys: w.keys})
	if err != nil || got.First != 12 || got.Last != 17 {
		t.Errorf("got %+v, %v", got, err)
	}
	all := lines(t, w.files[1])
	rewrite(t, w.files[1], slices.Delete(all, 2, 3))
	if _, err := decisionlog.VerifyFile(w.files[1], decisionlog.VerifyOptions{}); err == nil {
		t.Error("a missing line is not reported")
	}
}

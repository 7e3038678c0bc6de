package journal_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// inFolder passes its folder to a second process of this program.
const inFolder = "QUAYMASTER_TEST_JOURNAL"

// TestWriteUntilKilled is run by the second process: it writes as fast as it can,
// and prints the number of lines on disk.
func TestWriteUntilKilled(t *testing.T) {
	folder := os.Getenv(inFolder)
	if folder == "" {
		t.Skip("for TestKilledUnderLoad alone")
	}
	k, _ := key(t)
	config := quiet(folder)
	config.SegmentSize, config.TotalSize, config.CheckpointLines = 256<<10, 1<<30, 50
	j := run(t, config, k)
	of := admitted(t)
	for i := 0; ; i++ {
		j.Take(numbered(of, i))
		if i%50 == 49 {
			flush(t, j.Journal)
			fmt.Println("flushed", i+1)
		}
	}
}

// TestKilledUnderLoad: all lines that a killed process reported on disk are in the log. Its
// chain is whole, and the log goes on.
func TestKilledUnderLoad(t *testing.T) {
	folder := t.TempDir()
	k, _ := key(t)
	total := 0
	for round := range 5 {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriteUntilKilled$")
		program.Env = append(os.Environ(), inFolder+"="+folder)
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		promised := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.Atoi(lines.Text()[min(8, len(lines.Text())):]); err == nil {
				promised = n
			}
			if promised >= 1000+round*37 {
				break
			}
		}
		if err := program.Process.Kill(); err != nil { // SIGKILL
			t.Fatal(err)
		}
		_ = program.Wait() // it was killed

		j := run(t, quiet(folder), k)
		if err := j.stop(); err != nil {
			t.Fatal(err)
		}
		got := verified(t, folder, nil)
		ids := uids(t, folder)[total:]
		if len(ids) < promised || !slices.Equal(ids, counted(len(ids))) {
			t.Fatalf("round %d: %d lines, or with gaps; %d were reported on disk", round, len(ids), promised)
		}
		total += len(ids)
		if got.Lost != 0 || got.Decisions != uint64(total) {
			t.Errorf("got %+v", got)
		}
	}
	t.Logf("%d lines after five kills", total)
	for line, err := range decisionlog.ReadBack(folder) {
		if err != nil || line.Checkpoint == nil || !line.Checkpoint.Closed {
			t.Errorf("the last line is %+v, %v", line.Entry, err)
		}
		break
	}
}

// TestDefect: a decision that cannot be encoded because of a defect is lost alone. The
// log records the loss and goes on.
func TestDefect(t *testing.T) {
	k, keys := key(t)
	config := quiet(t.TempDir())
	j := run(t, config, k)
	broken := numbered(admitted(t), 1)
	broken.Outcome.Verdicts = slices.Clone(broken.Outcome.Verdicts)
	broken.Outcome.Verdicts[0].Decisions = []policy.Decision{{Result: policy.Pass}} // of no check
	for _, d := range []report.Decided{numbered(admitted(t), 0), broken, numbered(admitted(t), 2)} {
		j.Take(d)
	}
	if err := j.stop(); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, config.Folder, keys); got.Decisions != 2 || got.Lost != 1 || !got.Closed {
		t.Errorf("got %+v", got)
	}
}

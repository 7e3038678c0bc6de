package journal_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

// processorTime is the processor time of the process so far, of all its threads: it is
// meaningful on a shared machine, too.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// reportProcessor reports the processor time of each round since a moment.
func reportProcessor(b *testing.B, since time.Duration) {
	b.Helper()
	b.ReportMetric(float64(processorTime(b)-since)/float64(b.N), "cpu-ns/op")
}

// BenchmarkTake is what a request waits for.
func BenchmarkTake(b *testing.B) {
	config := quiet(b.TempDir())
	config.Sync, config.Queue = journal.SyncNever, 1<<14
	j, err := journal.New(config) // no writer runs: this is the request's part alone
	if err != nil {
		b.Fatal(err)
	}
	of := admitted(b)
	b.ReportAllocs()
	began := processorTime(b)
	for b.Loop() {
		j.Take(of)
		if j.Stats().Queued == config.Queue {
			b.StopTimer()
			j, err = journal.New(config)
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	reportProcessor(b, began)
}

// BenchmarkRecord is the processor time of one line: made, encoded and hashed.
func BenchmarkRecord(b *testing.B) {
	of := admitted(b)
	chain, err := decisionlog.NewChain("replica-a", decisionlog.Position{})
	if err != nil {
		b.Fatal(err)
	}
	var text []byte
	b.ReportAllocs()
	began := processorTime(b)
	for b.Loop() {
		for _, d := range decisionlog.Decisions(of) {
			text, err = chain.Append(text[:0], &decisionlog.Entry{Kind: decisionlog.KindDecision, Time: of.Occasion.Time, Decision: &d})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	reportProcessor(b, began)
	b.ReportMetric(float64(len(text)), "bytes/line")
}

// BenchmarkWrite is a journal from end to end: lines a second into files that turn, are
// compressed and signed. Nothing may be lost.
func BenchmarkWrite(b *testing.B) {
	for _, sync := range []journal.Sync{journal.SyncNever, journal.SyncInterval, journal.SyncAlways} {
		b.Run(string(sync), func(b *testing.B) {
			k, keys := key(b)
			config := quiet(b.TempDir())
			config.Sync = sync
			config.TotalSize = 1 << 40
			j := run(b, config, k)
			of := admitted(b)
			b.ReportAllocs()
			waiting := 0
			began := processorTime(b)
			for b.Loop() {
				j.Take(of)
				waiting++
				if waiting == journal.DefaultQueue/2 {
					flush(b, j.Journal)
					waiting = 0
				}
			}
			flush(b, j.Journal)
			reportProcessor(b, began)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			if err := j.stop(); err != nil {
				b.Fatal(err)
			}
			if got := verified(b, config.Folder, keys); got.Lost > 0 || got.Decisions != uint64(b.N) {
				b.Errorf("%d of %d lines, %d lost", got.Decisions, b.N, got.Lost)
			}
		})
	}
}

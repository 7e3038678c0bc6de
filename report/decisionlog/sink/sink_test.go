package sink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/report/decisionlog/sink"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// pair is a journal and a follower of it, at work.
type pair struct {
	journal  *journal.Journal
	follower *sink.Follower
	stop     func()
}

func run(t *testing.T, config journal.Config, to sink.Receiver) pair {
	t.Helper()
	config.Replica, config.Log = "replica-a", quiet()
	j, err := journal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sink.New(sink.Config{Name: "test", Folder: config.Folder, Log: j, To: to, Trouble: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	key, err := decisionlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() {
		if err := j.Run(ctx, key); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() {
		cancel()
		both.Wait()
	})
	t.Cleanup(stop)
	<-j.Ready()
	return pair{j, f, stop}
}

func take(t *testing.T, j *journal.Journal, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		j.Take(report.Decided{Occasion: report.Occasion{Time: time.Now(), UID: fmt.Sprint(n), Undecided: "queue-full"}})
		if n%100 == 99 || n == to-1 {
			if err := j.Flush(t.Context(), j.Mark()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// received is what arrived of a log.
type received struct {
	mu   sync.Mutex
	text strings.Builder
	last uint64
}

func (r *received) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(text) {
		parsed, err := decisionlog.ParseLine([]byte(strings.TrimSuffix(line, "\n")))
		if err == nil && parsed.Seq > r.last { // a repeated line has a known number
			r.last = parsed.Seq
			r.text.WriteString(line)
		}
	}
}

// isWhole reports whether the very log arrived, by its chain.
func (r *received) isWhole(t *testing.T, folder string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var want strings.Builder
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		want.Write(append(line.Raw, '\n'))
	}
	if r.text.String() != want.String() {
		t.Errorf("%d bytes arrived, the log has %d", r.text.Len(), want.Len())
	}
}

// TestWebhook: everything arrives, in order, in spite of a webhook that fails at times,
// and goes on after a restart where it was.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var got received
	var mu sync.Mutex
	calls, failing := 0, true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("Content-Type") != "application/x-ndjson" || r.Header.Get("Quaymaster-First") == "" {
			t.Errorf("the header is %v", r.Header)
		}
		if failing && calls%2 == 1 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got.add(string(body))
	}))
	t.Cleanup(server.Close)
	to, err := sink.NewWebhook(sink.WebhookConfig{URL: server.URL, Token: func() (string, error) { return "s3cret", nil }})
	if err != nil {
		t.Fatal(err)
	}
	config := journal.Config{Folder: t.TempDir(), SegmentSize: 64 << 10}
	p := run(t, config, to)
	take(t, p.journal, 0, 1000)
	p.stop()
	got.isWhole(t, config.Folder)
	if s := p.follower.Stats(); s.Failures == 0 || s.Dropped != 0 || s.Behind != 0 || s.Delivered == 0 {
		t.Errorf("got %+v", s)
	}
	before := got.last
	p = run(t, config, to)
	take(t, p.journal, 1000, 1100)
	p.stop()
	got.isWhole(t, config.Folder)
	if s := p.follower.Stats(); s.Delivered != got.last-before {
		t.Errorf("%d lines were delivered again", s.Delivered-(got.last-before))
	}
	to.Close()
}

// TestDropsAreCounted: a receiver that is away for longer than the log keeps lines
// misses some, and the loss is reported.
func TestDropsAreCounted(t *testing.T) {
	t.Parallel()
	config := journal.Config{Folder: t.TempDir(), SegmentSize: 8 << 10, TotalSize: 24 << 10}
	away := run(t, config, receiver(func([]decisionlog.Line) error { return errors.New("away") }))
	take(t, away.journal, 0, 10)
	away.stop()
	full := journal.Config{Folder: config.Folder, SegmentSize: config.SegmentSize, TotalSize: config.TotalSize}
	p := run(t, full, receiver(func([]decisionlog.Line) error { return errors.New("away still") }))
	for n := range 30 {
		take(t, p.journal, n*10, n*10+10)
	}
	p.stop()
	var first, count uint64
	back := run(t, config, receiver(func(lines []decisionlog.Line) error {
		if first == 0 {
			first = lines[0].Seq
		}
		count += uint64(len(lines))
		return nil
	}))
	back.stop()
	s := back.follower.Stats()
	if first < 2 || s.Dropped != first-1 || s.Delivered != count || s.Delivered+s.Dropped != back.journal.Committed() {
		t.Errorf("from number %d, %d lines: %+v of %d", first, count, s, back.journal.Committed())
	}
}

// TestComingLate: a follower that is scheduled only at shutdown still
// delivers all lines of the log.
func TestComingLate(t *testing.T) {
	t.Parallel()
	for range 20 { // a choice between two that are ready is made at random
		config := journal.Config{Folder: t.TempDir()}
		p := run(t, config, receiver(func([]decisionlog.Line) error { return nil }))
		take(t, p.journal, 0, 3)
		p.stop()
		var count uint64
		late, err := sink.New(sink.Config{Name: "late", Folder: config.Folder, Log: p.journal, Trouble: quiet(),
			To: receiver(func(lines []decisionlog.Line) error { count += uint64(len(lines)); return nil })})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := late.Run(ctx); err != nil || count != p.journal.Committed() {
			t.Fatalf("%d of %d lines arrived: %v", count, p.journal.Committed(), err)
		}
	}
}

type receiver func([]decisionlog.Line) error

func (r receiver) Deliver(_ context.Context, lines []decisionlog.Line) error { return r(lines) }

// TestCollector: a collector gets each line as it is.
func TestCollector(t *testing.T) {
	t.Parallel()
	var got received
	var severities []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var message collector.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &message); err != nil || r.URL.Path != "/v1/logs" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		for _, of := range message.ResourceLogs {
			for _, scope := range of.ScopeLogs {
				for _, record := range scope.LogRecords {
					got.add(record.Body.GetStringValue() + "\n")
					severities = append(severities, record.EventName+" "+record.SeverityText)
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	to, err := sink.NewCollector(t.Context(), sink.CollectorConfig{Endpoint: server.URL, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	config := journal.Config{Folder: t.TempDir()}
	p := run(t, config, to)
	take(t, p.journal, 0, 50)
	p.stop()
	got.isWhole(t, config.Folder)
	for _, want := range []string{"quaymaster.open INFO", "quaymaster.decision WARN", "quaymaster.checkpoint INFO"} {
		if !slices.Contains(severities, want) {
			t.Errorf("there is no %s among %v", want, severities)
		}
	}
	if err := to.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStream(t *testing.T) {
	var out strings.Builder
	config := journal.Config{Folder: t.TempDir()}
	p := run(t, config, sink.Stream{To: &out})
	take(t, p.journal, 0, 50)
	p.stop()
	got := received{}
	got.add(out.String())
	got.isWhole(t, config.Folder)
}

// TestBrokenCursor: a file that cannot be read costs a repetition, and nothing else.
func TestBrokenCursor(t *testing.T) {
	var out strings.Builder
	config := journal.Config{Folder: t.TempDir()}
	if err := os.WriteFile(config.Folder+"/sink-test.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, config, sink.Stream{To: &out})
	take(t, p.journal, 0, 5)
	p.stop()
	got := received{}
	got.add(out.String())
	got.isWhole(t, config.Folder)
}

func TestWebhooksAreChecked(t *testing.T) {
	for _, row := range []struct {
		reason, url string
		taken       bool
	}{
		{"TLS", "https://collector.example/decisions", true},
		{"on this machine", "http://localhost:8080/", true},
		{"readable over the network", "http://collector.example/decisions", false},
		{"a password", "https://jo:pass@collector.example/", false},
		{"no URL", "collector.example", false},
		{"another scheme", "ftp://collector.example", false},
	} {
		if _, err := sink.NewWebhook(sink.WebhookConfig{URL: row.url}); (err == nil) != row.taken {
			t.Errorf("%s: %v", row.reason, err)
		} else if err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: the password is in %v", row.reason, err)
		}
	}
}

// TestWebhookIsNotLedAway: a redirect is no answer, and a metadata service is not asked.
func TestWebhookIsNotLedAway(t *testing.T) {
	line := []decisionlog.Line{{Raw: []byte("{}")}}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was followed") }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	for _, url := range []string{server.URL, "https://169.254.169.254/"} {
		to, err := sink.NewWebhook(sink.WebhookConfig{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Deliver(t.Context(), line); err == nil {
			t.Errorf("%s took it", url)
		}
	}
}

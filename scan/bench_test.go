package scan_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// fleet is a cluster of pods that are made when they are listed, so that what a scan
// holds is all that is held.
type fleet struct {
	pods, namespaces int
	images           []string
	pace             *rate.Limiter // nil: as fast as it goes
	pages            atomic.Int64
}

func (*fleet) Kinds(context.Context) ([]scan.Kind, error) { return []scan.Kind{pods}, nil }

func (f *fleet) List(ctx context.Context, _ scan.Kind, from string, most int) (scan.Page, error) {
	if f.pace != nil {
		if err := f.pace.Wait(ctx); err != nil {
			return scan.Page{}, err
		}
	}
	f.pages.Add(1)
	at, _ := strconv.Atoi(from)
	end := min(at+most, f.pods)
	var page scan.Page
	for i := at; i < end; i++ {
		object, err := workload.ParseValue(f.pod(i))
		if err != nil {
			return page, err
		}
		page.Objects = append(page.Objects, object)
	}
	page.Remaining = int64(f.pods - end)
	if end < f.pods {
		page.Continue = strconv.Itoa(end)
	}
	return page, nil
}

// pod is one of some 4 kB, as API servers have them; an image is everywhere in the list.
func (f *fleet) pod(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%d","namespace":"ns-%d","uid":"00000000-0000-0000-0000-%012d",`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs-%d","uid":"u%d","controller":true}],"annotations":{"filler":"%4000d"}},`+
		`"spec":{"containers":[{"name":"app","image":%q}]}}`, i, i*f.namespaces/f.pods, i, i/10, i/10, i, f.images[i*7919%len(f.images)])
}

// Labels implements scan.Namespaces.
func (*fleet) Labels(context.Context, string) (map[string]string, error) { return nil, nil }

// counted counts the decisions, and keeps nothing.
type counted struct{ decided, allowed int }

func (c *counted) Take(d report.Decided) {
	c.decided++
	if d.Outcome.Result == gate.Allow {
		c.allowed++
	}
}

// port is a gate of real parts before a registry that is far away.
type port struct {
	*gatetest.Env
	view *scan.View
}

func newPort(b *testing.B, delay time.Duration, images int) (*port, []string) {
	b.Helper()
	h := testkit.Must(gatetest.NewEnv())(b)
	b.Cleanup(h.Close)
	h.Registry.Close()
	h.Yard = gatetest.New(registrytest.Start(registrytest.Options{Delay: delay}), h.Sigstore)
	names := make([]string, images)
	for i := range names {
		signed := h.Build(fmt.Sprintf("shop/app-%d", i), "1", strconv.Itoa(i))
		if err := h.SignLegacy(signed, verifytest.Claim{Signer: h.Signer, NoLog: true}, nil); err != nil {
			b.Fatal(err)
		}
		names[i] = signed.Name
	}
	set := testkit.Must(set.New(testkit.Must(h.Policy(signedPolicy))(b)))(b)
	return &port{Env: h, view: scan.NewView(gate.Fixed{Policies: set, Prover: h.Prover})}, names
}

// scanner is one that remembers nothing yet, as the gateway wires it.
func (p *port) scanner(b *testing.B, of *fleet, to report.Sink) *scan.Scanner {
	b.Helper()
	calm := testkit.Must(scan.NewPacer(p.Env, 1000))(b)
	decider := testkit.Must(gate.New(gate.Config{Registries: calm, State: p.view}, gate.WithConcurrency(16), gate.WithTimeout(10*time.Minute), gate.WithAges(gate.Ages{Tag: 5 * time.Minute})))(b)
	return testkit.Must(scan.New(scan.Options{Cluster: of, Decider: decider, State: p.view, Namespaces: of, Observer: &watching{}, Sinks: []report.Sink{to}, Passes: ignored{}}))(b)
}

// peak watches the heap until done is closed, and returns the most that was in use.
func peak(done <-chan struct{}) <-chan float64 {
	most := make(chan float64, 1)
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		var highest uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapInuse+now.StackInuse)
			select {
			case <-done:
				most <- float64(highest) / (1 << 20)
				return
			case <-ticker.C:
			}
		}
	}()
	return most
}

func measured(b *testing.B, s *scan.Scanner) (took time.Duration, mib float64) {
	b.Helper()
	runtime.GC()
	done := make(chan struct{})
	most := peak(done)
	began := time.Now()
	summary, err := s.Round(b.Context())
	took = time.Since(began)
	close(done)
	if err != nil || !summary.Complete() || summary.Denied > 0 {
		b.Fatalf("%+v, %v", summary, err)
	}
	return took, <-most
}

// BenchmarkCold is a scan of 10,000 pods with 500 images, 20 ms to the registry and
// nothing in memory, and the round after it.
func BenchmarkCold(b *testing.B) {
	const images = 500
	p, names := newPort(b, 20*time.Millisecond, images)
	for b.Loop() {
		f, to := &fleet{pods: 10_000, namespaces: 100, images: names}, &counted{}
		s := p.scanner(b, f, to)
		p.Registry.Reset()
		first, mib := measured(b, s)
		asked, pulled := len(p.Registry.Requests()), p.Registry.Pulls()
		p.Registry.Reset()
		second, _ := measured(b, s)
		again := len(p.Registry.Requests())
		if to.allowed != 20_000 || asked > 5*images || again != 0 {
			b.Fatalf("%d allowed, %d requests, then %d", to.allowed, asked, again)
		}
		b.ReportMetric(first.Seconds(), "s/first")
		b.ReportMetric(second.Seconds(), "s/second")
		b.ReportMetric(float64(asked)/images, "requests/image")
		b.ReportMetric(float64(pulled)/images, "pulls/image")
		b.ReportMetric(float64(again), "requests/again")
		b.ReportMetric(mib, "MiB")
	}
}

// fleetPages are the pages a second that BenchmarkFleet allows: the default of scan.qps.
const fleetPages = 10

// ignored discards the passes it receives: a scan tracks passes only with a receiver.
type ignored struct{}

func (ignored) Passed(context.Context, scan.Pass) {}

// BenchmarkFleet is a round over 150,000 pods with 3,000 images in 1,000 namespaces that
// are proved already, at 10 pages a second.
func BenchmarkFleet(b *testing.B) {
	p, names := newPort(b, 0, 3000)
	f, to := &fleet{pods: 150_000, namespaces: 1000, images: names}, &counted{}
	s := p.scanner(b, f, to)
	measured(b, s)
	for b.Loop() {
		f.pages.Store(0)
		f.pace = rate.NewLimiter(fleetPages, fleetPages)
		to.decided = 0
		p.Registry.Reset()
		took, mib := measured(b, s)
		if pages := f.pages.Load(); to.decided != f.pods || pages != int64(f.pods/scan.PageSize) || p.Registry.Pulls() != 0 {
			b.Fatalf("%d decided, %d pages, %d pulls", to.decided, pages, p.Registry.Pulls())
		} else if most := fleetPages*took.Seconds() + fleetPages + 1; float64(pages) > most {
			b.Fatalf("%d pages in %s, want %.0f at most", pages, took, most)
		}
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(f.pages.Load())/took.Seconds(), "pages/s")
		b.ReportMetric(float64(p.Registry.Pulls()), "pulls")
		b.ReportMetric(float64(len(p.Registry.Requests())), "requests")
		b.ReportMetric(mib, "MiB")
	}
}

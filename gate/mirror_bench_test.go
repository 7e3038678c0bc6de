package gate_test

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache/redis"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
)

// pier is a source and its mirrors on one registry, so that its log has the order of
// all requests: below src/ is the source, below one/ and two/ are the mirrors.
type pier struct{ *env }

func newPier(t testing.TB, delay time.Duration) pier {
	t.Helper()
	return pier{newEnv(t, registrytest.Options{Delay: delay})}
}

// signed makes a signed image at the source, and copies of the contents at the
// mirrors; an empty one is none.
func (p pier) signed(t testing.TB, name string, contents ...string) gatetest.Image {
	t.Helper()
	made := p.Build("src/"+name, "v1", name)
	must(0, legacy(p.env, made))(t)
	for i, content := range contents {
		if content != "" {
			p.Build([]string{"one/", "two/"}[i]+name, "v1", content)
		}
	}
	return made
}

// entries are mappings to both mirrors, after so many others, with sources on the same registry
// and elsewhere. Without the source's own entry, its images are not mirrored.
func (p pier) entries(t testing.TB, others int, own bool, targets ...string) *mirror.Set {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: pier}\nspec:\n  mirrors:\n")
	for i := range others {
		source := fmt.Sprintf("%s/team-%d", p.Registry.Host(), i)
		if i%2 == 1 {
			source = fmt.Sprintf("registry-%d.example", i)
		}
		fmt.Fprintf(&b, "  - {sources: ['%s'], targets: [{location: mirror.example/x%d}]}\n", source, i)
	}
	if own {
		for i, target := range targets {
			targets[i] = "{location: '" + target + "', path: ReplacePrefix}"
		}
		fmt.Fprintf(&b, "  - {sources: ['%s/src'], targets: [%s]}\n", p.Registry.Host(), strings.Join(targets, ", "))
	}
	return must(mirror.NewSet(must(mirror.Parse([]byte(b.String()), "test"))(t)))(t)
}

// both are the mirrors on the registry.
func (p pier) both() []string {
	return []string{p.Registry.Host() + "/one", p.Registry.Host() + "/two"}
}

// gateOf makes a gate that has proved nothing yet; no mirrors is nil.
func (p pier) gateOf(t testing.TB, mirrors *mirror.Set, chooser []redirect.Option, options ...gate.Option) *gate.Gate {
	t.Helper()
	state := p.state(t)
	if mirrors != nil {
		state.Mirrors = mirrors
		made := must(redirect.New(chooser...))(t)
		t.Cleanup(made.Close)
		options = append(options, gate.WithMirrors(made, nil))
	}
	return must(gate.New(gate.Config{Registries: p.env, State: state}, options...))(t)
}

func (p pier) state(t testing.TB) gate.Fixed {
	t.Helper()
	set := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(p.key)}}))(t)
	return gate.Fixed{Policies: set, Prover: proverOf(p.env)}
}

// coldRedirections are first proofs by tag, of an image with one mirror or two. The host is
// not known yet, so that one request is for its referrers tag.
var coldRedirections = []struct {
	reason           string
	mirrored         bool
	contents         []string // at the mirrors
	rounds, requests int
	redirected       string // the mirror, empty for none
}{
	{"no mirrors: tag, signature manifest and referrers, payload", false, nil, 3, 5, ""},
	{"the mirror serves it: its tag beside the source's", true, []string{"app"}, 3, 6, "/one/"},
	{"the first lags: asked for the digest, then the second", true, []string{"older", "app"}, 3, 8, "/two/"},
	{"the only one lags: asked for the digest", true, []string{"older"}, 3, 7, ""},
}

// targetsOf are as many mirrors as there are contents.
func (p pier) targetsOf(contents []string) []string { return p.both()[:len(contents)] }

// TestSerialRoundsOfARedirection: source and target are asked at the same time, and no registry
// when warm.
func TestSerialRoundsOfARedirection(t *testing.T) {
	for _, row := range coldRedirections {
		t.Run(row.reason, func(t *testing.T) {
			p := newPier(t, settleTime)
			app := p.signed(t, "app", row.contents...)
			g := p.gateOf(t, p.mirrorsOf(t, row.mirrored, row.contents), nil)
			p.Registry.Reset()
			out := decide(t, g, app.Name)
			if to := fmt.Sprint(out.Patch); out.Result != gate.Allow || row.redirected != "" && !strings.Contains(to, row.redirected) {
				t.Fatalf("%s, %s: %+v", out.Result, to, out.Verdicts)
			}
			if got := p.Registry.Rounds(); got > row.rounds {
				t.Errorf("%d serial rounds, want at most %d:\n%s", got, row.rounds, requests(p.env))
			}
			if got := len(p.Registry.Requests()); got != row.requests || int(out.Cost.Requests) != got {
				t.Errorf("%d requests (the verdict has %d), want %d:\n%s", got, out.Cost.Requests, row.requests, requests(p.env))
			}
			p.Registry.Reset()
			if again := decide(t, g, app.Name); again.Result != gate.Allow || len(p.Registry.Requests()) != 0 {
				t.Errorf("warm: %s after\n%s", again.Result, requests(p.env))
			}
		})
	}
}

func (p pier) mirrorsOf(t testing.TB, mirrored bool, contents []string) *mirror.Set {
	t.Helper()
	if !mirrored {
		return nil
	}
	return p.entries(t, 0, true, p.targetsOf(contents)...)
}

// BenchmarkColdRedirection measures first proofs by tag with 20 ms to the registry.
func BenchmarkColdRedirection(b *testing.B) {
	for _, row := range coldRedirections {
		b.Run(row.reason, func(b *testing.B) {
			p := newPier(b, 20*time.Millisecond)
			app := p.signed(b, "app", row.contents...)
			set, rounds := p.mirrorsOf(b, row.mirrored, row.contents), 0
			total := 0
			for b.Loop() {
				g := p.gateOf(b, set, nil)
				p.Registry.Reset()
				if g.Decide(b.Context(), pod(b, app.Name)).Result != gate.Allow {
					b.Fatal("not allowed")
				}
				rounds = max(rounds, p.Registry.Rounds())
				total += len(p.Registry.Requests())
			}
			b.ReportMetric(float64(rounds), "rounds")
			b.ReportMetric(float64(total)/float64(b.N), "requests/op")
		})
	}
}

// BenchmarkWarmRedirection measures a pod that was proved and redirected a moment
// ago, by tag.
func BenchmarkWarmRedirection(b *testing.B) {
	for _, containers := range []int{1, 8} {
		for _, row := range []struct {
			reason string
			others int // entries for other images
			own    bool
			copies bool // the mirrors' names are written already
		}{
			{"mirrors=none", -1, false, false},
			{"mirrors=100,image=other", 100, false, false},
			{"mirrors=1,image=mirrored", 0, true, false},
			{"mirrors=100,image=mirrored", 99, true, false},
			{"mirrors=100,image=copy", 99, true, true},
		} {
			b.Run(fmt.Sprintf("containers=%d/%s", containers, row.reason), func(b *testing.B) {
				p := newPier(b, 0)
				var set *mirror.Set
				if row.others >= 0 {
					set = p.entries(b, row.others, row.own, p.both()...)
				}
				var names []string
				for i := range containers {
					made := p.signed(b, fmt.Sprintf("app%d", i), fmt.Sprintf("app%d", i))
					name := made.Name
					if row.copies {
						name = strings.Replace(name, "/src/", "/one/", 1) + "@" + made.Manifest.Digest
					}
					names = append(names, name)
				}
				hour := []redirect.Option{redirect.WithAges(time.Hour, time.Hour, time.Hour)}
				g := p.gateOf(b, set, hour, gate.WithAges(gate.Ages{None: time.Hour, Tag: time.Hour}))
				request := pod(b, names...)
				if out := g.Decide(b.Context(), request); out.Result != gate.Allow || row.own && !row.copies != strings.Contains(fmt.Sprint(out.Patch), "/one/") {
					b.Fatalf("%s %v", out.Result, out.Patch)
				}
				p.Registry.Reset()
				measure(b, g, request)
				b.ReportMetric(float64(len(p.Registry.Requests()))/float64(b.N), "requests/op")
			})
		}
	}
}

// dead is a registry that does not answer.
type dead struct {
	reason      string
	holds       bool // accepts connections without a response, else closes them at once
	health      bool // with a health record
	connections int64
}

// deadRegistries are what fifty admissions of fifty images meet before a probe.
var deadRegistries = []dead{
	{"silent", true, true, 1},
	{"refusing", false, true, 3}, // the client tries three times
	{"refusing, without a health record", false, false, 150},
}

// listen opens the address of a dead registry, and counts.
func (d dead) listen(t testing.TB) (address string, connections *atomic.Int64) {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	connections = &atomic.Int64{}
	held := make(chan net.Conn, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			held <- conn
			if !d.holds {
				_ = conn.Close()
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		for len(held) > 0 {
			_ = (<-held).Close()
		}
	})
	return listener.Addr().String(), connections
}

// fifty are images that the second mirror has.
func (p pier) fifty(t testing.TB) []gatetest.Image {
	t.Helper()
	images := make([]gatetest.Image, 50)
	for i := range images {
		name := fmt.Sprintf("app%d", i)
		images[i] = p.signed(t, name, "", name)
	}
	return images
}

// admit admits images with a dead first target.
func (p pier) admit(t testing.TB, d dead, images []gatetest.Image) (connections int64, took []time.Duration) {
	t.Helper()
	address, counted := d.listen(t)
	// The first rest outlasts the test also where fifty admissions take longer than the usual one.
	breaker := must(health.New(health.Config{Probe: p.client.Ping}, health.WithRest(time.Minute, time.Hour)))(t)
	defer breaker.Close()
	var options []redirect.Option
	if d.health {
		options = append(options, redirect.WithHealth(breaker))
	}
	g := p.gateOf(t, p.entries(t, 0, true, address+"/one", p.Registry.Host()+"/two"), options)
	for _, made := range images {
		started := time.Now()
		out := g.Decide(t.Context(), pod(t, made.Name))
		took = append(took, time.Since(started))
		if out.Result != gate.Allow || !strings.Contains(fmt.Sprint(out.Patch), "/two/") {
			t.Fatalf("%s %v: %+v", out.Result, out.Patch, out.Verdicts[0].Redirect)
		}
		// The caller gives up a moment before the failure is recorded.
		for d.health && len(took) == 1 && time.Since(started) < 20*time.Second {
			if _, resting := breaker.Rest(address); resting {
				break
			}
			runtime.Gosched()
		}
	}
	return counted.Load(), took
}

// TestADeadFirstTargetIsConnectedToOnce: all fifty images come before a probe.
func TestADeadFirstTargetIsConnectedToOnce(t *testing.T) {
	t.Parallel() // it waits for a registry that does not answer
	p := newPier(t, 0)
	images := p.fifty(t)
	for _, d := range deadRegistries {
		if !d.health {
			continue // 20 s; the benchmark has it
		}
		t.Run(d.reason, func(t *testing.T) {
			connections, took := p.admit(t, d, images)
			if connections > d.connections {
				t.Errorf("%d connections for %d admissions, want %d", connections, len(took), d.connections)
			}
			if slowest := slices.Max(took[1:]); slowest > time.Second {
				t.Errorf("an admission after the first took %s", slowest)
			}
		})
	}
}

// BenchmarkDeadFirstTarget measures those fifty admissions.
func BenchmarkDeadFirstTarget(b *testing.B) {
	for _, d := range deadRegistries {
		b.Run(d.reason, func(b *testing.B) {
			p := newPier(b, 0)
			images := p.fifty(b)
			var connections int64
			var first, rest time.Duration
			for b.Loop() {
				n, took := p.admit(b, d, images)
				connections += n
				first += took[0]
				slices.Sort(took[1:])
				rest += took[len(took)/2]
			}
			b.ReportMetric(float64(connections)/float64(b.N), "connections/50")
			b.ReportMetric(float64(first.Microseconds())/float64(b.N)/1000, "first-ms")
			b.ReportMetric(float64(rest.Microseconds())/float64(b.N)/1000, "median-ms")
		})
	}
}

// redisServer starts a real one on loopback, which forgets all when it ends.
func redisServer(t testing.TB) (address string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("skipped: no redis-server in PATH (Debian package redis-server)")
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	server := exec.Command(path, "--port", fmt.Sprint(at.Port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Process.Kill(), server.Wait() })
	for end := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = conn.Close()
			return at.String()
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// replica is a gate with its own view of the shared cache.
func (p pier) replica(t testing.TB, address string, mirrors *mirror.Set) *gate.Gate {
	t.Helper()
	key := []byte(strings.Repeat("k", 32))
	store := must(redis.New(redis.Config{Address: address, Keys: func() ([]byte, [][]byte) { return key, nil }}, redis.WithTimeout(2*time.Second)))(t)
	t.Cleanup(store.Close)
	return p.gateOf(t, mirrors, nil, gate.WithStore(store))
}

// secondReplica has one replica verify an image, and returns the requests to registries of the
// first admission by a second one that shares its cache.
func (p pier) secondReplica(t testing.TB, address string, mirrors *mirror.Set, name string) (requests int, took time.Duration) {
	t.Helper()
	first := p.replica(t, address, mirrors)
	if first.Decide(t.Context(), pod(t, name)).Result != gate.Allow {
		t.Fatal("not allowed")
	}
	for end := time.Now().Add(20 * time.Second); ; { // the first shares asynchronously
		second := p.replica(t, address, mirrors)
		p.Registry.Reset()
		started := time.Now()
		out := second.Decide(t.Context(), pod(t, name))
		took, requests = time.Since(started), len(p.Registry.Requests())
		if out.Result != gate.Allow {
			t.Fatal("not allowed")
		}
		if requests <= 2 || time.Now().After(end) {
			return requests, took
		}
	}
}

// secondReplicas are an image by tag and by digest, and one that is redirected.
var secondReplicas = []struct {
	reason   string
	byDigest bool
	mirrored bool
	requests int
}{
	{"by tag: the tag", false, false, 1},
	{"by digest: nothing", true, false, 0},
	{"by tag and redirected: the tag, and the target beside it", false, true, 2},
	{"by digest and redirected: the target", true, true, 1},
}

func (p pier) named(t testing.TB, i int, byDigest, mirrored bool) (string, *mirror.Set) {
	t.Helper()
	name := fmt.Sprintf("app%d", i)
	made := p.signed(t, name, name)
	var set *mirror.Set
	if mirrored {
		set = p.entries(t, 0, true, p.both()[0])
	}
	if byDigest {
		return made.ByDigest(), set
	}
	return made.Name, set
}

// TestASecondReplicaAsksOnce: with the shared cache, no claim is verified again.
func TestASecondReplicaAsksOnce(t *testing.T) {
	address := redisServer(t)
	for i, row := range secondReplicas {
		t.Run(row.reason, func(t *testing.T) {
			p := newPier(t, 0)
			name, set := p.named(t, i, row.byDigest, row.mirrored)
			if got, _ := p.secondReplica(t, address, set, name); got != row.requests {
				t.Errorf("%d requests, want %d:\n%s", got, row.requests, requests(p.env))
			}
		})
	}
}

// BenchmarkSecondReplica measures its first admission with 20 ms to the registry.
func BenchmarkSecondReplica(b *testing.B) {
	address := redisServer(b)
	for i, row := range secondReplicas {
		b.Run(row.reason, func(b *testing.B) {
			p := newPier(b, 20*time.Millisecond)
			name, set := p.named(b, i, row.byDigest, row.mirrored)
			var total int
			var took time.Duration
			for b.Loop() {
				n, d := p.secondReplica(b, address, set, name)
				total, took = total+n, took+d
			}
			b.ReportMetric(float64(total)/float64(b.N), "requests/op")
			b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "second-ms")
		})
	}
}

// proverOf proves cosign's signatures by the env's trust.
func proverOf(h *env) gate.Prover {
	return prover{Snapshot: h.snapshot, ByFormat: verify.ByFormat{attest.Cosign: cosign.New(h.snapshot)}}
}

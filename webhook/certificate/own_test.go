package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const service = "quaymaster.quaymaster.svc"

// clock is moved by hand.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func newOwn(t testing.TB, store Store, c *clock, names ...string) *Own {
	t.Helper()
	if len(names) == 0 {
		names = []string{service, "127.0.0.1"}
	}
	own, err := NewOwn(OwnConfig{Store: store, Where: "secret a/b", Names: names, Log: slog.New(slog.DiscardHandler), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func refresh(t testing.TB, s interface{ Refresh(context.Context) error }) {
	t.Helper()
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// call makes a TLS connection to a server of the source, trusting only bundle.
func call(s *Source, bundle []byte, name string, now time.Time) error {
	return callWhile(s, bundle, name, func() time.Time { return now })
}

// callWhile does that while the clock runs.
func callWhile(s *Source, bundle []byte, name string, now func() time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	go func() {
		far, err := listener.Accept()
		if err != nil {
			return
		}
		// The client returns the error.
		_ = tls.Server(far, &tls.Config{GetCertificate: s.GetCertificate, Time: now}).Handshake()
		_ = far.Close()
	}()
	near, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = near.Close() }()
	client := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name, Time: now})
	return client.Handshake()
}

// TestKeyAfterChange: a reader of the first certificate sees the replicas' key. A reader that did
// not would wait for the next change, which may be weeks away.
func TestKeyAfterChange(t *testing.T) {
	for range 500 {
		own := newOwn(t, &Memory{}, newClock())
		var running sync.WaitGroup
		running.Go(func() { refresh(t, own) })
		for own.Bundle() == nil {
			runtime.Gosched()
		}
		if len(own.PeerKey()) != peerKeySize {
			t.Fatal("the certificate changed, and the key is absent")
		}
		running.Wait()
	}
}

func TestOwnIsKnownByItsBundle(t *testing.T) {
	c := newClock()
	own, other := newOwn(t, &Memory{}, c), newOwn(t, &Memory{}, c)
	if own.Ready() == nil || own.Bundle() != nil || !own.Expires().IsZero() {
		t.Error("ready before anything was loaded")
	}
	if err := call(own.Source, nil, service, c.now()); err == nil {
		t.Error("a call went well before anything was loaded")
	}
	refresh(t, own)
	refresh(t, other)
	for _, row := range []struct {
		reason string
		bundle []byte
		name   string
		wrong  bool
	}{
		{"the service's name", own.Bundle(), service, false},
		{"an address", own.Bundle(), "127.0.0.1", false},
		{"another authority", other.Bundle(), service, true},
		{"another name", own.Bundle(), "kubernetes.default.svc", true},
	} {
		if err := call(own.Source, row.bundle, row.name, c.now()); (err != nil) != row.wrong {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	if err := own.Ready(); err != nil {
		t.Error(err)
	}
	if len(own.PeerKey()) != peerKeySize || bytes.Equal(own.PeerKey(), other.PeerKey()) {
		t.Error("the replicas' key is not a key")
	}
	c.pass(LeafLife + time.Second)
	if own.Ready() == nil {
		t.Error("ready with an expired certificate")
	}
}

// TestThreeYears has two replicas of one Secret, of which one refreshes only every
// other day, and a caller with a bundle that is always one refresh old.
func TestThreeYears(t *testing.T) {
	c, store := newClock(), &Memory{}
	replicas := []*Own{newOwn(t, store, c), newOwn(t, store, c)}
	refresh(t, replicas[0])
	refresh(t, replicas[1])
	known, leaves, authorities := replicas[0].Bundle(), map[string]bool{}, map[string]bool{}
	peers := replicas[0].PeerKey()
	for day := range 3 * 365 {
		c.pass(24 * time.Hour)
		for i, replica := range replicas {
			if i == 0 || day%2 == 0 {
				refresh(t, replica)
			}
			if err := call(replica.Source, known, service, c.now()); err != nil {
				t.Fatalf("day %d, replica %d: %v", day, i, err)
			}
			leaves[replica.held.certificate.Leaf.SerialNumber.String()] = true
		}
		known = replicas[0].Bundle()
		all, err := parseAuthorities(known)
		if err != nil || len(all) > 2 {
			t.Fatalf("day %d: %d authorities, %v", day, len(all), err)
		}
		for _, a := range all {
			authorities[a.SerialNumber.String()] = true
		}
	}
	if len(leaves) < 18 || len(leaves) > 25 || len(authorities) < 4 || len(authorities) > 6 {
		t.Errorf("%d leaves and %d authorities in three years", len(leaves), len(authorities))
	}
	if !bytes.Equal(peers, replicas[1].PeerKey()) {
		t.Error("the replicas' key changed without need")
	}
}

// TestAuthorityExpires: of two authorities the one counts that issued the served leaf.
// An old one on its way out causes no alert.
func TestAuthorityExpires(t *testing.T) {
	c := newClock()
	own := newOwn(t, &Memory{}, c)
	if end := own.AuthorityExpires(); !end.IsZero() {
		t.Errorf("before anything was loaded: %s", end)
	}
	least := AuthorityLife
	for range 3 * 365 {
		refresh(t, own)
		least = min(least, own.AuthorityExpires().Sub(c.now()))
		if own.AuthorityExpires().Before(own.Expires()) {
			t.Fatalf("%s: the authority ends before the certificate that it signed", c.now())
		}
		c.pass(24 * time.Hour)
	}
	if left := AuthorityLife / 3; least < left-LeafLife || least > left {
		t.Errorf("the authority was renewed when %s were left, want about %s", least, left)
	}
	foreign := newOwn(t, &Memory{}, c)
	refresh(t, foreign)
	if end := authorityEnds(own.held.certificate, foreign.Bundle()); !end.IsZero() {
		t.Errorf("an authority that did not sign it ends at %s", end)
	}
}

// TestRotationUnderLoad calls all the time while the clock runs.
func TestRotationUnderLoad(t *testing.T) {
	c := newClock()
	own := newOwn(t, &Memory{}, c)
	refresh(t, own)
	type view struct {
		bundle []byte
		step   int64
	}
	var seen atomic.Pointer[view]
	var calls, step atomic.Int64
	publish := func() { seen.Store(&view{own.Bundle(), step.Load()}) }
	publish()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := seen.Load()
				err := callWhile(own.Source, v.bundle, service, c.now)
				calls.Add(1)
				// A caller that misses two refreshes (a day each) may have an old bundle.
				if err != nil && step.Load() <= v.step+1 {
					t.Errorf("step %d: %v", v.step, err)
					return
				}
			}
		})
	}
	for range 400 {
		before := calls.Load()
		c.pass(24 * time.Hour)
		step.Add(1)
		refresh(t, own)
		publish()
		for calls.Load() < before+2 && !t.Failed() {
			<-time.After(100 * time.Microsecond)
		}
	}
	close(stop)
	callers.Wait()
	if calls.Load() < 400 {
		t.Errorf("only %d calls", calls.Load())
	}
}

func TestNewAuthorityIsPublishedFirst(t *testing.T) {
	c := newClock()
	own := newOwn(t, &Memory{}, c)
	refresh(t, own)
	first := own.Bundle()
	c.pass(AuthorityLife*2/3 - LeafLife/2)
	refresh(t, own) // a young leaf, so that only the authority is due next
	c.pass(LeafLife/2 + 24*time.Hour)
	changed := own.Changed()
	refresh(t, own)
	select {
	case <-changed:
	default:
		t.Fatal("the new bundle was not reported")
	}
	if bytes.Equal(own.Bundle(), first) || !bytes.Contains(own.Bundle(), first) {
		t.Fatal("the bundle does not hold the old authority beside the new one")
	}
	if err := call(own.Source, first, service, c.now()); err != nil {
		t.Errorf("a caller of the old bundle, at once: %v", err)
	}
	c.pass(PublishTime - time.Second)
	refresh(t, own)
	if err := call(own.Source, first, service, c.now()); err != nil {
		t.Errorf("a caller of the old bundle, a second before the time is over: %v", err)
	}
	c.pass(time.Second)
	refresh(t, own)
	if err := call(own.Source, first, service, c.now()); err == nil {
		t.Error("the new authority is not in use after its time of publication")
	}
	if err := call(own.Source, own.Bundle(), service, c.now()); err != nil {
		t.Error(err)
	}
	c.pass(AuthorityLife / 2)
	refresh(t, own)
	if bytes.Contains(own.Bundle(), first) {
		t.Error("an expired authority is still in the bundle")
	}
}

func TestReplicasAgree(t *testing.T) {
	c, store := newClock(), &Memory{}
	replicas := make([]*Own, 5)
	var all sync.WaitGroup
	for i := range replicas {
		replicas[i] = newOwn(t, store, c)
		all.Go(func() {
			if err := replicas[i].Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, replica := range replicas[1:] {
		if !bytes.Equal(replica.Bundle(), replicas[0].Bundle()) || !bytes.Equal(replica.PeerKey(), replicas[0].PeerKey()) {
			t.Error("two replicas have two authorities")
		}
	}
}

func TestReplicasOfTwoConfigurations(t *testing.T) {
	c, store := newClock(), &Memory{}
	before, after := newOwn(t, store, c, service), newOwn(t, store, c, service, "gateway.example")
	for range 3 {
		refresh(t, before)
		refresh(t, after)
	}
	refresh(t, before)
	if before.Expires() != after.Expires() || !bytes.Equal(before.held.certificate.Certificate[0], after.held.certificate.Certificate[0]) {
		t.Error("the replicas take each other's certificate away")
	}
	if err := call(before.Source, before.Bundle(), "gateway.example", c.now()); err != nil {
		t.Error(err)
	}
}

// altered is a Store with content that a test changes.
func altered(t *testing.T, c *clock, ours bool, change func(map[string][]byte)) (store *Memory, bundle []byte) {
	t.Helper()
	store = &Memory{}
	own := newOwn(t, store, c)
	refresh(t, own)
	store.content.Ours = ours
	change(store.content.Entries)
	return store, own.Bundle()
}

func TestBrokenContent(t *testing.T) {
	c := newClock()
	foreign := &Memory{}
	refresh(t, newOwn(t, foreign, c))
	another := foreign.content.Entries
	for _, row := range []struct {
		reason string
		change func(map[string][]byte)
		// remade: callers of the old bundle must learn a new one.
		remade, whole bool
	}{
		{"nothing is wrong", func(map[string][]byte) {}, false, true},
		{"the leaf is missing", func(e map[string][]byte) { delete(e, EntryCertificate) }, false, false},
		{"the leaf is another's", func(e map[string][]byte) { e[EntryCertificate] = another[EntryCertificate] }, false, false},
		{"leaf and key are of another authority", func(e map[string][]byte) {
			e[EntryCertificate], e[EntryKey] = another[EntryCertificate], another[EntryKey]
		}, false, true}, // each entry is whole; the leaf is signed anew
		{"the leaf's key is broken", func(e map[string][]byte) { e[EntryKey] = []byte("hello") }, false, false},
		{"the replicas' key is short", func(e map[string][]byte) { e[EntryPeers] = e[EntryPeers][:31] }, false, false},
		// The old leaf is served until the new authority was published.
		{"the authority's key is missing", func(e map[string][]byte) { delete(e, EntryAuthority) }, false, false},
		{"the authority's key is another's", func(e map[string][]byte) { e[EntryAuthority] = another[EntryAuthority] }, false, false},
		{"the bundle is broken", func(e map[string][]byte) { e[EntryBundle] = []byte("hello") }, true, false},
		{"the bundle is huge", func(e map[string][]byte) { e[EntryBundle] = bytes.Repeat(e[EntryBundle], 200) }, true, false},
		{"the bundle has too many", func(e map[string][]byte) { e[EntryBundle] = bytes.Repeat(e[EntryBundle], maxAuthorities+1) }, true, false},
		{"a leaf is in the bundle", func(e map[string][]byte) { e[EntryBundle] = e[EntryCertificate] }, true, false},
		{"everything is gone", func(e map[string][]byte) { clear(e) }, true, true}, // shipped to be filled
	} {
		t.Run(row.reason, func(t *testing.T) {
			store, bundle := altered(t, c, true, row.change)
			own := newOwn(t, store, c)
			refresh(t, own)
			if err := call(own.Source, own.Bundle(), service, c.now()); err != nil {
				t.Errorf("after a look: %v", err)
			}
			if err := call(own.Source, bundle, service, c.now()); (err != nil) != row.remade {
				t.Errorf("a caller of the old bundle: %v", err)
			}
			if flaws := read(store.content.Entries).flaws; len(flaws) > 0 {
				t.Errorf("not mended: %v", flaws)
			}
			// The twin: the same content, possibly from another owner.
			store, _ = altered(t, c, false, row.change)
			before := maps.Clone(store.content.Entries)
			err := newOwn(t, store, c).Refresh(t.Context())
			if (err == nil) != row.whole {
				t.Errorf("where it is not ours: %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), "secret a/b") || !maps.EqualFunc(before, store.content.Entries, bytes.Equal)) {
				t.Errorf("a foreign entry was changed, or not named: %v", err)
			}
		})
	}
}

func TestDeletedContentIsARotation(t *testing.T) {
	c, store := newClock(), &Memory{}
	own := newOwn(t, store, c)
	refresh(t, own)
	first, key := own.Bundle(), store.content.Entries[EntryAuthority]
	*store = Memory{}
	refresh(t, own)
	if err := call(own.Source, first, service, c.now()); err != nil {
		t.Errorf("a caller of the old bundle: %v", err)
	}
	if bytes.Equal(store.content.Entries[EntryAuthority], key) {
		t.Error("the deleted key came back")
	}
	c.pass(PublishTime)
	refresh(t, own)
	if err := call(own.Source, own.Bundle(), service, c.now()); err != nil {
		t.Error(err)
	}
}

func TestLongSleep(t *testing.T) {
	for _, asleep := range []time.Duration{LeafLife + time.Hour, AuthorityLife + time.Hour} {
		c, store := newClock(), &Memory{}
		refresh(t, newOwn(t, store, c))
		c.pass(asleep)
		own := newOwn(t, store, c)
		refresh(t, own)
		if err := call(own.Source, own.Bundle(), service, c.now()); err != nil {
			t.Errorf("after %s: %v", asleep, err)
		}
	}
}

// trouble is a Store that fails.
type trouble struct {
	Memory
	get, put error
}

func (s *trouble) Get(ctx context.Context) (Content, error) {
	if s.get != nil {
		return Content{}, s.get
	}
	return s.Memory.Get(ctx)
}

func (s *trouble) Put(ctx context.Context, entries map[string][]byte, version string) error {
	if s.put != nil {
		return s.put
	}
	return s.Memory.Put(ctx, entries, version)
}

func TestStoreInTrouble(t *testing.T) {
	c := newClock()
	forbidden := errors.New("forbidden")
	store := &trouble{get: forbidden}
	own := newOwn(t, store, c)
	if err := own.Refresh(t.Context()); !errors.Is(err, forbidden) {
		t.Errorf("found %v", err)
	}
	store.get, store.put = nil, forbidden
	if err := own.Refresh(t.Context()); !errors.Is(err, forbidden) || own.Ready() == nil {
		t.Errorf("what could not be kept is served: %v", err)
	}
	store.put = ErrConflict
	if err := own.Refresh(t.Context()); err == nil {
		t.Error("a conflict without end passed for success")
	}
	store.put = nil
	refresh(t, own)
	store.get = forbidden
	if err := own.Refresh(t.Context()); err == nil || own.Ready() != nil {
		t.Errorf("the certificate before must still be served: %v", own.Ready())
	}
}

func TestRunFollows(t *testing.T) {
	c, store := newClock(), &trouble{get: errors.New("not yet")}
	own := newOwn(t, store, c)
	if !own.keep(store.get) || own.keep(store.get) {
		t.Error("the same trouble is news twice")
	}
	store.get = nil
	ctx, stop := context.WithCancel(t.Context())
	changed, done := own.Changed(), make(chan struct{})
	go func() { own.Run(ctx); close(done) }()
	<-changed
	stop()
	<-done
	if err := own.Ready(); err != nil {
		t.Error(err)
	}
}

func TestNewOwnRefuses(t *testing.T) {
	good := OwnConfig{Store: &Memory{}, Where: "here", Names: []string{service}, Log: slog.New(slog.DiscardHandler)}
	if _, err := NewOwn(good); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]func(*OwnConfig){
		"no store":      func(c *OwnConfig) { c.Store = nil },
		"no place":      func(c *OwnConfig) { c.Where = "" },
		"no log":        func(c *OwnConfig) { c.Log = nil },
		"no names":      func(c *OwnConfig) { c.Names = nil },
		"an empty name": func(c *OwnConfig) { c.Names = []string{""} },
		"a URL":         func(c *OwnConfig) { c.Names = []string{"https://gateway.example"} },
		"a wildcard":    func(c *OwnConfig) { c.Names = []string{"*.example"} },
		"a port":        func(c *OwnConfig) { c.Names = []string{"gateway.example:443"} },
		"too many":      func(c *OwnConfig) { c.Names = slices.Repeat([]string{service}, maxNames+1) },
	} {
		config := good
		change(&config)
		if _, err := NewOwn(config); err == nil {
			t.Errorf("%s: not refused", reason)
		}
	}
}

// TestUnknownExtensions: clients verify no certificate by an authority with a critical
// extension that they do not know, so that it must not stay in the bundle.
func TestUnknownExtensions(t *testing.T) {
	for _, critical := range []bool{true, false} {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "a"}, NotAfter: time.Now().Add(AuthorityLife), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			ExtraExtensions: []pkix.Extension{{Id: []int{1, 2, 3, 4}, Critical: critical, Value: []byte{5, 0}}},
		}
		authority, _, err := issue(template, nil, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseAuthorities(encodeCertificate(authority)); (err != nil) != critical {
			t.Errorf("critical %t: %v", critical, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	store := &Memory{}
	own, err := NewOwn(OwnConfig{Store: store, Where: "here", Names: []string{service}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	if err := own.Refresh(context.Background()); err != nil {
		f.Fatal(err)
	}
	e := store.content.Entries
	f.Add(e[EntryBundle], e[EntryAuthority], e[EntryCertificate], e[EntryKey], e[EntryPeers])
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{}, []byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, bundle, authority, leaf, key, peers []byte) {
		now := time.Now()
		found := read(map[string][]byte{EntryBundle: bundle, EntryAuthority: authority, EntryCertificate: leaf, EntryKey: key, EntryPeers: peers})
		if _, err := found.renew([]string{service}, now); err != nil {
			return // such as a key that cannot sign
		}
		s := newSource(nil)
		s.swap(found.held())
		if err := call(s, s.Bundle(), service, now); err != nil {
			t.Errorf("the certificate after the repair is not trusted by its bundle: %v", err)
		}
	})
}

package trust

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// unsteady is repositories that return the error fails, if any. The real ones are verify/trust's
// matter.
type unsteady struct {
	root []byte

	mu    sync.Mutex
	fails error
	asked []string // folders
}

func (u *unsteady) set(fails error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fails = fails
}

func (u *unsteady) read(folder string) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, folder)
	if u.fails != nil {
		return nil, u.fails
	}
	return u.root, nil
}

func (u *unsteady) TrustRoot(_ *trustroot.TUF, folder string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return u.read(folder) }
}

func (u *unsteady) Attestor(_ attestor.TUF, folder string) func(context.Context) ([]byte, error) {
	return u.TrustRoot(nil, folder)
}

// TestRootsAreReadBesideRequests: a repository is read when it is named, retried until it answers,
// and read again later; its last content stays.
func TestRootsAreReadBesideRequests(t *testing.T) {
	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	root, err := trustroot.Parse([]byte(`{"apiVersion": "policy.sigstore.dev/v1alpha1", "kind": "TrustRoot", "metadata": {"name": "remote"},
"spec": {"remote": {"root": "eyJzaWduZWQiOnsiX3R5cGUiOiJyb290In19", "mirror": "https://tuf.example"}}}`), "a test")
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("no response")
	synctest.Test(t, func(t *testing.T) {
		source := &unsteady{root: sigstore.TrustedRoot(), fails: away}
		reported := 0
		r := &Roots{
			Fetch: source, Folder: "cache", TrustRoots: &trustroot.Roots{}, Attestors: attestor.NewRepositories(),
			Documents: func() []catalog.Entry { return []catalog.Entry{{Root: root}, {Source: "a policy"}} },
			Changed:   &gateway.Signal{}, Reported: func() { reported++ }, Log: slog.New(slog.DiscardHandler),
		}
		r.TrustRoots.Put(root)
		if why := r.State(root); why == "" {
			t.Error("it is read before the first read")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		synctest.Wait()
		tuf := attestor.TUF{Mirror: "https://other.example", Key: "k"}
		for _, step := range []struct {
			reason string
			do     func()
			later  time.Duration
			asked  int
			known  bool
			why    string
			unread int
		}{
			{"at once", func() {}, 0, 1, false, "no response", 1},
			{"again, and again later", func() {}, 3 * time.Second, 3, false, "no response", 1},
			{"it answers", func() { source.set(nil) }, 5 * time.Second, 4, true, "", 0},
			{"not sooner than in an hour", func() {}, rootInterval - time.Minute, 4, true, "", 0},
			{"and then it is away", func() { source.set(away) }, time.Minute - rootPause/2, 5, true, "", 1},
			{"an attestor names another one", func() { source.set(nil); r.Attestors.Want(tuf) }, 0, 6, true, "", 1},
		} {
			step.do()
			<-time.After(step.later)
			synctest.Wait()
			source.mu.Lock()
			asked := len(source.asked)
			source.mu.Unlock()
			_, err := r.TrustRoots.TrustedRoot("remote")
			if r.Unread() != step.unread {
				t.Errorf("%s: %d repositories could not be read, want %d", step.reason, r.Unread(), step.unread)
			}
			if asked != step.asked || (err == nil) != step.known || err != nil && !strings.Contains(err.Error(), step.why) || r.State(root) != step.why {
				t.Errorf("%s: asked %d times, want %d; %v; %q", step.reason, asked, step.asked, err, r.State(root))
			}
		}
		if _, err := r.Attestors.TrustedRoot(tuf); err != nil {
			t.Error(err)
		}
		stop()
		<-ended
		if reported != 3 || source.asked[0] == source.asked[5] || source.asked[0] != source.asked[4] {
			t.Errorf("reported %d times, folders %v", reported, source.asked)
		}
	})
}

// hanging is repositories that do not respond within a minute, except those at responsive.example.
// It counts the readers that were made, by mirrors.
type hanging struct {
	root []byte

	mu   sync.Mutex
	made map[string]int
}

func (h *hanging) TrustRoot(t *trustroot.TUF, _ string) func(context.Context) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made[t.Mirror]++
	return func(ctx context.Context) ([]byte, error) {
		if strings.HasPrefix(t.Mirror, "https://responsive.example") {
			return h.root, nil
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func (h *hanging) Attestor(t attestor.TUF, folder string) func(context.Context) ([]byte, error) {
	return h.TrustRoot(&trustroot.TUF{Mirror: t.Mirror}, folder)
}

// TestUnresponsiveRepositories delay those of others by no more than one attempt.
func TestUnresponsiveRepositories(t *testing.T) {
	sigstore := verifytest.Must(verifytest.New(verifytest.Options{}))
	for _, row := range []struct {
		reason             string
		namespaces, each   int    // with unresponsive repositories
		cluster            int    // as many, of policies of the whole cluster
		of                 string // the namespace with the responsive one
		joined             bool   // a namespace requests the responsive one, too
		demanded           bool   // objects wait for the unresponsive ones
		within, withinLate time.Duration
	}{
		{"none", 0, 0, 0, "", false, false, 0, 0},
		{"a namespace and the cluster", 1, 8, 0, "", false, true, 0, 0},
		{"all namespaces and the cluster", 32, 8, 0, "", false, true, 0, 0},
		{"a namespace and another one", 1, 8, 0, "good", false, true, 0, 0},
		{"three namespaces and another one", 3, 8, 0, "good", false, false, time.Minute, 0},
		{"three namespaces in demand", 3, 8, 0, "good", false, true, time.Minute, 0},
		{"three namespaces, one of which requests the same", 3, 8, 0, "good", true, true, time.Minute, 0},
		{"the cluster's own", 0, 0, 60, "", false, false, time.Minute, 0},
		{"the cluster's own in demand: three times its seats", 0, 0, 17, "", false, true, 2 * time.Minute, 0},
		{"the cluster's and a namespace", 0, 0, 60, "good", false, true, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &hanging{root: sigstore.TrustedRoot(), made: map[string]int{}}
			r := &Roots{
				Fetch: h, TrustRoots: &trustroot.Roots{}, Attestors: attestor.NewRepositories(), Documents: func() []catalog.Entry { return nil },
				Changed: &gateway.Signal{}, Reported: func() {}, Log: slog.New(slog.DiscardHandler),
			}
			want := func(namespace, mirror string) attestor.TUF {
				tuf := attestor.TUF{Mirror: mirror, Key: mirror, Namespace: namespace}
				r.Attestors.Want(tuf)
				return tuf
			}
			var unresponsive []attestor.TUF
			for i := range row.cluster {
				unresponsive = append(unresponsive, want("", fmt.Sprint("https://cluster.example/", i)))
			}
			for n := range row.namespaces {
				for i := range row.each {
					unresponsive = append(unresponsive, want(fmt.Sprint("bad", n), fmt.Sprint("https://bad.example/", n, "/", i)))
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); r.Run(ctx) }()
			if row.demanded {
				go func() {
					for each := time.Tick(time.Second); ; {
						for _, tuf := range unresponsive {
							_, _ = r.Attestors.TrustedRoot(tuf)
						}
						select {
						case <-each:
						case <-ctx.Done():
							return
						}
					}
				}()
			}
			synctest.Wait()
			for _, first := range []bool{true, false} {
				tuf := want(row.of, fmt.Sprint("https://responsive.example/", first))
				if row.joined {
					want("bad0", tuf.Mirror)
				}
				within := row.within
				if !first {
					within = row.withinLate
				}
				<-time.After(within)
				synctest.Wait()
				if _, err := r.Attestors.TrustedRoot(tuf); err != nil {
					t.Errorf("%s, first %t: not read within %s: %v", row.reason, first, within, err)
				}
				<-time.After(20 * time.Minute)
			}
			if n := h.made["https://responsive.example/true"]; n != 1 {
				t.Errorf("%s: %d readers of a repository, want one that keeps what it verified", row.reason, n)
			}
			stop()
			<-ended
		})
	}
}

package trust

import (
	"context"
	"errors"
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

func (u *unsteady) TrustRoot(_ context.Context, _ *trustroot.TUF, folder string) ([]byte, error) {
	return u.read(folder)
}

func (u *unsteady) Attestor(_ context.Context, _ attestor.TUF, folder string) ([]byte, error) {
	return u.read(folder)
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

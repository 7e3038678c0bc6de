package redirect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

var (
	wanted = image.DigestOf([]byte("wanted"))
	stale  = image.DigestOf([]byte("stale"))
)

// trip is how long each answer of a fake target takes.
const trip = 100 * time.Millisecond

// target is a fake repository that misbehaves on demand.
type target struct {
	tag      image.Digest // of any tag; zero: there is none
	has      []image.Digest
	err      error  // in place of any answer
	hangs    bool   // until the context ends
	deaf     bool   // for ever
	panics   string // where: open, scope, resolve
	digest   image.Digest
	lies     bool          // with digest, to whatever is asked
	slow     time.Duration // in place of trip
	unopened error
	scope    string
}

// fleet is all targets by repository, and their requests, in order.
type fleet struct {
	targets map[string]*target
	end     chan struct{} // ends those that are deaf

	mu    sync.Mutex
	asked []string
}

func newFleet(targets map[string]*target) *fleet {
	return &fleet{targets: targets, end: make(chan struct{})}
}

func (f *fleet) Open(_ context.Context, repository image.Repository) (redirect.Session, error) {
	t, ok := f.targets[repository.String()]
	switch {
	case !ok:
		return nil, errors.New("an unknown target was opened: " + repository.String())
	case t.panics == "open":
		panic("at the endpoint")
	}
	return session{f, t}, t.unopened
}

type session struct {
	*fleet
	*target
}

func (s session) Scope() string {
	if s.panics == "scope" {
		panic("no scope")
	}
	return s.scope
}

func (s session) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	s.mu.Lock()
	s.asked = append(s.asked, ref.String())
	s.mu.Unlock()
	switch {
	case s.panics == "resolve":
		panic("in the middle")
	case s.deaf:
		<-s.end
		return image.Pinned{}, errors.New("the end")
	case s.hangs:
		<-ctx.Done()
		return image.Pinned{}, context.Cause(ctx)
	}
	wait := s.slow
	if wait == 0 {
		wait = trip
	}
	time.Sleep(wait) //nolint:forbidigo // of the bubble's clock: a request's time
	missing := &image.Error{Kind: image.NotFound, Op: "resolve", On: ref.String()}
	switch {
	case s.err != nil:
		return image.Pinned{}, s.err
	case s.lies && s.digest.IsZero():
		return image.Pinned{}, nil
	case s.lies:
		return image.MustParse("elsewhere.example/x").Pin(image.Descriptor{Digest: s.digest})
	case ref.Digest().IsZero() && !s.tag.IsZero():
		return ref.Pin(image.Descriptor{Digest: s.tag})
	case !ref.Digest().IsZero() && (s.tag == ref.Digest() || slices.Contains(s.has, ref.Digest())):
		return ref.Pin(image.Descriptor{Digest: ref.Digest()})
	}
	return image.Pinned{}, missing
}

// requests returns the requests since the last call.
func (f *fleet) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := strings.Join(f.asked, " ")
	f.asked = nil
	return strings.ReplaceAll(strings.ReplaceAll(asked, wanted.String(), "wanted"), stale.String(), "stale")
}

// question is about app at the hosts m1, m2 and so on: as the source has it (with
// :v1 or @digest or both), and with what changes the route.
func (f *fleet) question(reference string, change ...func(*mirror.Route)) redirect.Request {
	route := &mirror.Route{Mirror: "RegistryMirror/test[0]", When: mirror.Verified, Otherwise: mirror.UseSource, Resolve: mirror.Source}
	for i := range len(f.targets) {
		route.Candidates = append(route.Candidates, mirror.Candidate{Ref: image.MustParse(fmt.Sprintf("m%d.example/app%s", i+1, reference))})
	}
	for _, c := range change {
		c(route)
	}
	return redirect.Request{Route: route, Open: f.Open}
}

func always(r *mirror.Route)   { r.When = mirror.Always }
func byTarget(r *mirror.Route) { r.Resolve = mirror.Target }
func filling(r *mirror.Route) {
	for i := range r.Candidates {
		r.Candidates[i].Fill = true
	}
}

// recordingHealth is a Health that records its reports.
type recordingHealth struct {
	mu      sync.Mutex
	resting map[string]string
	told    []string
	trips   bool // an unresponsive one rests
}

func (h *recordingHealth) Rest(registry string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why, resting := h.resting[registry]
	return why, resting
}

func (h *recordingHealth) Told(registry string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kind := string(image.KindOf(err))
	if kind == "" {
		kind = "ok"
	}
	h.told = append(h.told, registry+" "+kind)
	if h.trips && image.KindOf(err) == image.Unavailable {
		h.resting[registry] = "silence"
	}
}

func (h *recordingHealth) tellings() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := strings.Join(h.told, ", ")
	h.told = nil
	return told
}

// bubble runs a test with a clock of its own, and a chooser that must leave no
// goroutine behind.
func bubble(t *testing.T, targets []*target, run func(t *testing.T, c *redirect.Chooser, f *fleet), with ...redirect.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		named := map[string]*target{}
		for i, target := range targets {
			named[fmt.Sprintf("m%d.example/app", i+1)] = target
		}
		c, err := redirect.New(with...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f := newFleet(named)
		run(t, c, f)
		close(f.end)
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock: what still runs then is left for ever
	})
}

// states are those of the attempts, as in "chosen not-asked".
func states(attempts []redirect.Attempt) string {
	list := make([]string, len(attempts))
	for i, a := range attempts {
		list[i] = string(a.State)
	}
	return strings.Join(list, " ")
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// want compares, and names the compared value in its error.
func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

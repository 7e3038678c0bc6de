package scan_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/scan"
)

// diary is a Follower that records the calls of rounds.
type diary struct {
	mu     sync.Mutex
	heard  []string
	behind []scan.Kind
	fell   chan struct{}
}

func (d *diary) Kinds(kinds []scan.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range kinds {
		d.heard = append(d.heard, "kind "+k.Resource)
	}
}

func (d *diary) Listed(kind scan.Kind, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, "listed "+kind.Resource+" "+version)
	d.behind = slices.DeleteFunc(d.behind, func(k scan.Kind) bool { return k == kind })
}

func (d *diary) Refused(kind scan.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, "refused "+kind.Resource)
}

func (d *diary) Behind() ([]scan.Kind, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.behind), d.fell
}

// fall has a kind fall behind.
func (d *diary) fall(kind scan.Kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behind = []scan.Kind{kind}
	close(d.fell)
	d.fell = make(chan struct{})
}

// calls returns the calls since the last time.
func (d *diary) calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	heard := d.heard
	d.heard = nil
	return heard
}

// TestFollowerCalls: the start of each list, where it is complete.
func TestFollowerCalls(t *testing.T) {
	for _, row := range []struct {
		reason string
		before func() func(scan.Kind, string) error
		want   []string
	}{
		{"the version of the first page", func() func(scan.Kind, string) error { return nil }, []string{"kind pods", "listed pods v0"}},
		{"the list cannot go on: that of the next", func() func(scan.Kind, string) error {
			failed := false
			return func(_ scan.Kind, from string) error {
				if from == "1" && !failed {
					failed = true
					return &scan.ExpiredError{Err: errors.New("410")}
				}
				return nil
			}
		}, []string{"kind pods", "listed pods v0", "listed pods v0"}},
		{"it goes on among newer objects: the first", func() func(scan.Kind, string) error {
			return func(_ scan.Kind, from string) error {
				if from == "1" {
					return &scan.ExpiredError{Next: "2", Err: errors.New("410")}
				}
				return nil
			}
		}, []string{"kind pods", "listed pods v0"}},
		{"it is not allowed", func() func(scan.Kind, string) error {
			return func(scan.Kind, string) error { return scan.ErrRefused }
		}, []string{"kind pods", "refused pods"}},
	} {
		w := newWorld(t, labelPolicy("of-pods", "Pod", ""))
		w.most = 1
		w.add(t, pods, pod("shop", "a", "nginx"), pod("shop", "b", "nginx"), pod("shop", "c", "nginx"))
		w.before = row.before()
		d := &diary{}
		w.options.Follower = d
		w.round(t)
		if got := d.calls(); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}

// TestCatchingUp: kinds that fell behind are listed again, soon and not all the time; a new
// follower has to list everything, also where a round was just done.
func TestCatchingUp(t *testing.T) {
	w := newWorld(t, labelPolicy("of-pods", "Pod", ""), labelPolicy("of-maps", "ConfigMap", ""))
	w.add(t, pods, pod("shop", "a", "nginx"))
	w.add(t, configMaps)
	for _, follows := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w.options.Follower = nil
			memory, told := &lease{}, &changes{}
			o := scan.ControllerOptions{Policies: told, Memory: memory}
			led(t, w, o, func() { pass(time.Minute) }) // a round without a follower
			if memory.saved().Ended.IsZero() {
				t.Fatal("the round is not done")
			}
			listed := func() []string {
				w.stub.mu.Lock()
				defer w.stub.mu.Unlock()
				all := w.listed
				w.listed = nil
				return all
			}
			listed()
			d := &diary{fell: make(chan struct{})}
			if follows {
				w.options.Follower = d
			}
			led(t, w, o, func() {
				pass(time.Minute)
				if got := listed(); (len(got) == 2) != follows {
					t.Errorf("following %t, %v were listed at the start", follows, got)
				}
				if !follows {
					return
				}
				d.fall(configMaps)
				pass(time.Second)
				if got := listed(); !slices.Equal(got, []string{"configmaps/"}) {
					t.Errorf("a second after ConfigMaps fell behind %v were listed", got)
				}
				d.fall(configMaps)
				pass(10 * time.Second)
				if got := listed(); len(got) != 0 {
					t.Errorf("ten seconds later they were listed again: %v", got)
				}
				pass(2 * time.Minute)
				if got := listed(); !slices.Equal(got, []string{"configmaps/"}) {
					t.Errorf("within two minutes %v were listed", got)
				}
			})
		})
	}
}

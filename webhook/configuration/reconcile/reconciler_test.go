package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// shelf is a Store of one object, with faults to play.
type shelf[T any] struct {
	mu      sync.Mutex // TestRun changes things by the clock alone
	object  *T
	faults  []error // of the next writes
	writes  int
	getting error
	alter   func(*T) // the stored object; may be nil
}

func (s *shelf[T]) Get(context.Context, string, metav1.GetOptions) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.getting != nil:
		return nil, s.getting
	case s.object == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, configuration.Name)
	}
	found := *s.object
	return &found, nil
}

func (s *shelf[T]) write(object *T) (*T, error) {
	s.writes++
	if len(s.faults) > 0 {
		fault := s.faults[0]
		s.faults = s.faults[1:]
		if fault != nil {
			return nil, fault
		}
	}
	s.object = object
	if s.alter != nil {
		s.alter(object)
	}
	return object, nil
}

func (s *shelf[T]) Create(_ context.Context, object *T, _ metav1.CreateOptions) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, configuration.Name)
	}
	return s.write(object)
}

func (s *shelf[T]) Update(_ context.Context, object *T, _ metav1.UpdateOptions) (*T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, configuration.Name)
	}
	return s.write(object)
}

// now is the object for readers in parallel with a reconciler.
func (s *shelf[T]) now() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

func (s *shelf[T]) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object = nil
}

type source struct {
	mu    sync.Mutex
	input configuration.Input
	err   error
}

func (s *source) Input(context.Context) (configuration.Input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.input, s.err
}

func (s *source) set(in configuration.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.input = in
}

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

type bench struct {
	source     source
	mutating   shelf[admission.MutatingWebhookConfiguration]
	validating shelf[admission.ValidatingWebhookConfiguration]
	changed    chan struct{}
	warned     [][]configuration.Warning
	failed     []error
	wrote      []string
	kept       int
	left       Round
	reconciler *Reconciler
}

func newBench(t *testing.T, in configuration.Input) *bench {
	t.Helper()
	b := &bench{changed: make(chan struct{}, 1)}
	b.source.input = in
	b.lead(t)
	return b
}

// lead has a replica begin that knows nothing of rounds before.
func (b *bench) lead(t *testing.T) {
	t.Helper()
	var err error
	b.reconciler, err = New(Options{
		Source: &b.source, Mutating: &b.mutating, Validating: &b.validating, Changed: b.changed,
		Warned: func(w []configuration.Warning) { b.warned = append(b.warned, w) },
		Failed: func(err error) { b.failed = append(b.failed, err) },
		Kept:   func(r Round) { b.kept++; b.left = r },
		Wrote:  func(which string, why Why) { b.wrote = append(b.wrote, which+" "+string(why)) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) round(t *testing.T) {
	t.Helper()
	if err := b.reconciler.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) writes() [2]int { return [2]int{b.mutating.writes, b.validating.writes} }

func TestWritesOnce(t *testing.T) { synctest.Test(t, writesOnce) }

func writesOnce(t *testing.T) {
	b := newBench(t, full(t))
	b.round(t)
	b.round(t)
	if b.writes() != [2]int{1, 1} {
		t.Errorf("%v writes: a correct configuration was written again", b.writes())
	}
	if len(b.warned) != 1 || len(b.warned[0]) != 1 {
		t.Errorf("warned %q, want one warning once", b.warned)
	}
	b.source.input.Policies = nil
	b.source.input.Documents = nil
	b.round(t)
	time.Sleep(gracePeriod) //nolint:forbidigo // the clock of the bubble
	b.round(t)
	if b.writes() != [2]int{2, 3} || b.mutating.object == nil || len(b.mutating.object.Webhooks) != 1 || len(lines(b.validating.object.Webhooks)) != 0 {
		t.Errorf("no policies leave %+v", b.validating.object)
	}
	if len(b.warned) != 2 || len(b.warned[1]) != 0 {
		t.Errorf("warned %q, want the warning taken back", b.warned)
	}
}

func TestRepairs(t *testing.T) {
	type configuration = admission.ValidatingWebhookConfiguration
	tests := []struct {
		reason string
		spoil  func(*configuration) *configuration
		writes int
	}{
		{"nothing happened", func(c *configuration) *configuration { return c }, 0},
		{"others' words are left alone", func(c *configuration) *configuration {
			c.Labels["team"], c.Annotations["note"], c.ResourceVersion = "x", "y", "7"
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{Kind: "Namespace", Name: "x", UID: "1"})
			return c
		}, 0},
		{"it was deleted", func(*configuration) *configuration { return nil }, 1},
		{"fails open", func(c *configuration) *configuration {
			ignore := admission.Ignore
			c.Webhooks[0].FailurePolicy = &ignore
			return c
		}, 1},
		{"a webhook was taken out", func(c *configuration) *configuration { c.Webhooks = c.Webhooks[1:]; return c }, 1},
		{"a namespace was let out", func(c *configuration) *configuration {
			c.Webhooks[0].NamespaceSelector.MatchExpressions[0].Values = []string{"shop"}
			return c
		}, 1},
		{"another authority", func(c *configuration) *configuration { c.Webhooks[0].ClientConfig.CABundle = []byte("x"); return c }, 1},
		{"a condition that never holds", func(c *configuration) *configuration {
			c.Webhooks[0].MatchConditions = []admission.MatchCondition{{Name: "never", Expression: "false"}}
			return c
		}, 1},
		{"no label", func(c *configuration) *configuration { c.Labels = nil; return c }, 1},
		{"no owner: it would stay for ever", func(c *configuration) *configuration { c.OwnerReferences = nil; return c }, 1},
		{"an owner of the last release", func(c *configuration) *configuration { c.OwnerReferences[0].UID = "old"; return c }, 1},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			in := full(t)
			b := newBench(t, in)
			b.round(t)
			wanted, before := b.validating.object.DeepCopy(), b.left
			b.validating.object = test.spoil(b.validating.object.DeepCopy())
			b.validating.writes, b.mutating.writes = 0, 0
			b.lead(t)
			b.round(t)
			if kept := b.left.Validating == before.Validating; kept == (test.writes > 0) || b.left.Mutating != before.Mutating {
				t.Errorf("the marks were %v, and are %v after %d writes", before, b.left, test.writes)
			}
			for _, c := range []*configuration{wanted, b.validating.object} {
				*validatingProbe(c) = admission.WebhookClientConfig{}
			}
			if b.writes() != [2]int{0, test.writes} {
				t.Errorf("%v writes, want 0 and %d", b.writes(), test.writes)
			}
			if !equality.Semantic.DeepEqual(b.validating.object.Webhooks, wanted.Webhooks) {
				t.Error("the webhooks differ from the wanted ones")
			}
			owners := 0
			for _, o := range b.validating.object.OwnerReferences {
				if o.Kind == "ClusterRole" && o.UID == in.Owner.UID {
					owners++
				}
			}
			if owners != 1 || b.validating.object.Labels["app.kubernetes.io/managed-by"] != "quaymaster" {
				t.Errorf("it is owned by %v, with labels %v", b.validating.object.OwnerReferences, b.validating.object.Labels)
			}
		})
	}
}

func bubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// TestReportsTheCause distinguishes changes of policies from changes by other clients.
// Unrelated changes by other clients are ignored.
func TestReportsTheCause(t *testing.T) {
	for _, row := range []struct {
		reason string
		happen func(*bench)
		want   []string
	}{
		{"nothing", func(*bench) {}, nil},
		{"policies want less", func(b *bench) { b.source.input.Policies = nil }, []string{"validating wanted", "mutating wanted"}},
		{"others' words", func(b *bench) { b.mutating.object.Annotations["note"] = "x" }, nil},
		{"a client removes a webhook", func(b *bench) { b.validating.object.Webhooks = b.validating.object.Webhooks[1:] }, []string{"validating foreign"}},
		{"a client deletes one", func(b *bench) { b.mutating.remove() }, []string{"mutating missing"}},
		{"both at once", func(b *bench) {
			b.source.input.Documents = nil
			b.validating.object.Webhooks = b.validating.object.Webhooks[1:]
		}, []string{"validating foreign"}},
	} {
		t.Run(row.reason, bubble(func(t *testing.T) {
			b := newBench(t, full(t))
			b.round(t)
			if want := []string{"validating wanted", "mutating wanted"}; !slices.Equal(b.wrote, want) {
				t.Fatalf("the first round wrote %q, want %q", b.wrote, want)
			}
			b.wrote = nil
			b.validating.object, b.mutating.object = b.validating.object.DeepCopy(), b.mutating.object.DeepCopy()
			row.happen(b)
			b.round(t)
			time.Sleep(gracePeriod) //nolint:forbidigo // the clock of the bubble
			b.round(t)
			if !slices.Equal(b.wrote, row.want) || b.kept != 3 {
				t.Errorf("wrote %q, kept %d times, want %q and 3", b.wrote, b.kept, row.want)
			}
		}))
	}
	b := newBench(t, full(t))
	b.validating.faults = []error{errors.New("no")}
	if err := b.reconciler.Reconcile(t.Context()); err == nil || b.kept != 0 || slices.Contains(b.wrote, "validating wanted") {
		t.Errorf("a refused write is reported as kept (%d) or written (%q): %v", b.kept, b.wrote, err)
	}
}

func TestTriesAgain(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, configuration.Name, errors.New("another client wrote it"))
	refused := apierrors.NewForbidden(schema.GroupResource{}, configuration.Name, errors.New("no"))
	many := []error{conflict, conflict, conflict, conflict, conflict, conflict}
	tests := []struct {
		reason string
		faults []error
		writes int
		want   string
	}{
		{"no other writer", nil, 1, ""},
		{"a conflict passes", []error{conflict, conflict}, 3, ""},
		{"a conflict without end is left to the next round", many, maxTries, "another client"},
		{"a forbidden write fails", []error{refused, nil}, 1, "forbidden"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t, full(t))
			b.validating.faults = test.faults
			err := b.reconciler.Reconcile(t.Context())
			if b.validating.writes != test.writes {
				t.Errorf("%d writes, want %d", b.validating.writes, test.writes)
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if b.mutating.writes != 1 {
				t.Error("one configuration held up the other")
			}
		})
	}
}

// After an error the configurations stay: a gap would check nothing.
func TestLeavesAlone(t *testing.T) {
	tests := []struct {
		reason string
		spoil  func(*bench)
	}{
		{"the source does not know", func(b *bench) { b.source.err = errors.New("discovery failed") }},
		{"the input is refused", func(b *bench) { b.source.input.CABundle = nil }},
		{"the API server does not answer", func(b *bench) {
			b.mutating.getting, b.validating.getting = errors.New("timeout"), errors.New("timeout")
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			b := newBench(t, full(t))
			b.round(t)
			before := b.writes()
			b.source.input.Policies = nil
			test.spoil(b)
			if err := b.reconciler.Reconcile(t.Context()); err == nil {
				t.Error("no error")
			}
			if b.writes() != before {
				t.Error("it was written")
			}
		})
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, full(t))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.reconciler.Run(ctx)
		}()
		synctest.Wait()
		if b.writes() != [2]int{1, 1} {
			t.Fatalf("%v writes at the start", b.writes())
		}
		b.validating.remove()
		b.changed <- struct{}{}
		time.Sleep(pause) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if b.validating.now() == nil {
			t.Error("a reported deletion is not repaired after a second")
		}
		b.mutating.remove()
		time.Sleep(resync) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if b.mutating.now() == nil {
			t.Error("it was deleted, and is not back after the resync")
		}
		b.source.fail(errors.New("discovery failed"))
		time.Sleep(resync) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if len(b.failed) != 1 {
			t.Errorf("failed: %v", b.failed)
		}
		stop()
		<-done
		if b.validating.now() == nil || b.mutating.now() == nil {
			t.Error("it is gone at the end")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	whole := Options{Source: &source{}, Mutating: &shelf[admission.MutatingWebhookConfiguration]{}, Validating: &shelf[admission.ValidatingWebhookConfiguration]{}}
	if _, err := New(whole); err != nil {
		t.Error(err)
	}
	for reason, spoil := range map[string]func(*Options){
		"no source": func(o *Options) { o.Source = nil }, "no mutating": func(o *Options) { o.Mutating = nil }, "no validating": func(o *Options) { o.Validating = nil },
	} {
		o := whole
		spoil(&o)
		if reason == "" {
			continue
		}
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

// A policy for a kind is asked about once the kind's definition exists.
func TestKindThatComesLater(t *testing.T) {
	in := input(t, about([]string{"Rollout"}))
	b := newBench(t, in)
	b.round(t)
	if len(lines(b.validating.object.Webhooks)) != 0 || len(b.warned[0]) != 1 {
		t.Fatalf("webhooks %v, warnings %q", lines(b.validating.object.Webhooks), b.warned)
	}
	b.source.input.Resources = append(b.source.input.Resources, configuration.Resource{Group: "argoproj.io", Version: "v1alpha1", Name: "rollouts", Kind: "Rollout", Namespaced: true})
	b.round(t)
	if got := strings.Join(lines(b.validating.object.Webhooks), ";"); !strings.Contains(got, "argoproj.io/v1alpha1/rollouts") || len(b.warned[1]) != 0 {
		t.Errorf("webhooks %s, warnings %q", got, b.warned)
	}
}

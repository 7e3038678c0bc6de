package breakglass_test

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// shelf is a Memory that can fail.
type shelf struct {
	mu    sync.Mutex
	open  []breakglass.Opening
	fails int
}

func (s *shelf) Load(context.Context) ([]breakglass.Opening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return nil, errors.New("not now")
	}
	return slices.Clone(s.open), nil
}

func (s *shelf) Save(_ context.Context, open []breakglass.Opening) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.Clone(open)
	return nil
}

// said records the calls of an Observer.
type said struct {
	mu   sync.Mutex
	list []string
}

func (s *said) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

func (s *said) Opened(o breakglass.Opening, again bool) {
	s.add(fmt.Sprint("opened ", o.Namespace, " ", again))
}
func (s *said) Closed(o breakglass.Opening, why breakglass.Why) {
	s.add(fmt.Sprint("closed ", o.Namespace, " ", why))
}
func (s *said) Failed(err error) { s.add("failed: " + err.Error()) }

// take returns the records since the last call, once all goroutines wait.
func (s *said) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

func namespace(m *metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: *m}
}

func cluster(t *testing.T, objects ...runtime.Object) *fake.FakeMetadataClient {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

// run runs a Keeper until the bubble ends, and lets time pass for its first steps.
func run(t *testing.T, client *fake.FakeMetadataClient, memory *shelf) (*breakglass.Keeper, *said) {
	t.Helper()
	told := &said{}
	k, err := breakglass.New(breakglass.Options{Client: client, Label: label, Observer: told, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { k.Run(ctx) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
		if len(k.Open()) > 0 {
			t.Error("a stopped Keeper reports open namespaces")
		}
	})
	synctest.Wait()
	return k, told
}

func labels(t *testing.T, client *fake.FakeMetadataClient, name string) (labels, notes map[string]string) {
	t.Helper()
	got, err := client.Resource(namespaces).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Labels, got.Annotations
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		closing := open(now, time.Hour, func(m *metav1.ObjectMeta) {
			m.Labels["team"], m.Annotations["note"] = "a", "b"
		})
		client := cluster(t, namespace(closing), namespace(&metav1.ObjectMeta{Name: "bank", UID: "u2"}))
		memory := &shelf{fails: 1}
		k, told := run(t, client, memory)
		equal(t, told.take(), "failed: which namespaces were open: not now")
		<-time.After(10 * time.Second) // in a bubble, where it takes no time
		equal(t, told.take(), "opened shop false")
		if got := k.Open(); len(got) != 1 || got[0].Namespace != "shop" || len(memory.open) != 1 {
			t.Errorf("open are %v, remembered %v", got, memory.open)
		}
		// Another client extends it.
		extended := open(now, 3*time.Hour, func(m *metav1.ObjectMeta) { m.Labels, m.ResourceVersion = closing.Labels, "7" })
		extended.Annotations["note"] = "b"
		if _, err := client.Resource(namespaces).(fake.MetadataClient).UpdateFake(namespace(extended), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Hour) // in a bubble, where it takes no time
		equal(t, told.take(), "opened shop true")
		<-time.After(time.Hour) // in a bubble, where it takes no time
		equal(t, told.take(), "closed shop expired")
		l, notes := labels(t, client, "shop")
		if len(l) != 1 || l["team"] != "a" || len(notes) != 1 || notes["note"] != "b" {
			t.Errorf("it has %v and %v", l, notes)
		}
		if len(k.Open())+len(memory.open) > 0 {
			t.Errorf("open are %v, remembered %v", k.Open(), memory.open)
		}
	})
}

// TestKeeperStarts: an opening past its end is closed when a Keeper starts. An opening that
// an earlier Keeper recorded and that is gone is reported.
func TestKeeperStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		named := func(name string) func(*metav1.ObjectMeta) {
			return func(m *metav1.ObjectMeta) { m.Name, m.UID = name, "of-"+m.UID }
		}
		known, _ := breakglass.Judge(label, open(now, time.Hour), now)
		gone := breakglass.Opening{Namespace: "gone", UID: "u9", Until: now.Add(time.Hour)}
		client := cluster(t,
			namespace(open(now, time.Hour)),
			namespace(open(now.Add(-2*time.Hour), time.Hour, named("over"))),
		)
		_, told := run(t, client, &shelf{open: []breakglass.Opening{known, gone}})
		equal(t, told.take(), "opened over false", "closed over expired", "closed gone removed")
		if l, _ := labels(t, client, "shop"); len(l) != 1 {
			t.Errorf("a valid opening has %v", l)
		}
	})
}

// TestKeeperTriesAgain: an error of the API server is reported each time, and retried. A
// namespace that was changed a moment ago is read again, without a report.
func TestKeeperTriesAgain(t *testing.T) {
	for _, row := range []struct {
		reason string
		err    error
		want   []string
	}{
		{"refused", errors.New("no"), []string{"opened shop false", "failed: close the namespace shop (incomplete): no", "closed shop incomplete"}},
		{"changed", conflict(), []string{"opened shop false", "closed shop incomplete"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := cluster(t, namespace(open(time.Now(), time.Hour, func(m *metav1.ObjectMeta) { m.Annotations = nil })))
				fails := 1
				client.PrependReactor("patch", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) {
					fails--
					return fails >= 0, nil, row.err
				})
				_, told := run(t, client, &shelf{})
				<-time.After(30 * time.Second) // in a bubble, where it takes no time
				equal(t, told.take(), row.want...)
			})
		})
	}
}

// TestKeeperAgainstBusyTenant: a tenant that changes a namespace all the time does not keep
// it open, and an opening renewed at that very moment is not closed.
func TestKeeperAgainstBusyTenant(t *testing.T) {
	for _, row := range []struct {
		reason string
		renews bool
		want   []string
	}{
		{"another annotation", false, []string{"opened shop false", "closed shop expired"}},
		{"the end", true, []string{"opened shop false", "failed: close the namespace shop (expired)", "opened shop true"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				client := cluster(t, namespace(open(began.Add(-2*time.Hour), time.Hour)))
				writes := 0
				client.PrependReactor("patch", "namespaces", func(asked kubetesting.Action) (bool, runtime.Object, error) {
					writes++ // the tenant's, between the Keeper's read and its write
					changed := open(began.Add(-2*time.Hour), time.Hour, func(m *metav1.ObjectMeta) {
						m.ResourceVersion, m.Annotations["beat"] = fmt.Sprint(100+writes), fmt.Sprint(writes)
						if row.renews {
							m.Annotations[label+"-until"] = began.Add(time.Hour).Format(time.RFC3339)
						}
					})
					if err := client.Tracker().Update(namespaces, namespace(changed), ""); err != nil {
						t.Error(err)
					}
					patch, is := asked.(kubetesting.PatchAction)
					if is && strings.Contains(string(patch.GetPatch()), "resourceVersion") { // as the API server does
						return true, nil, conflict()
					}
					return false, nil, nil
				})
				_, told := run(t, client, &shelf{})
				<-time.After(30 * time.Second) // in a bubble, where it takes no time
				got := told.take()
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], "):")
					if strings.HasPrefix(got[i], "failed") {
						got[i] += ")"
					}
				}
				equal(t, got, row.want...)
				if l, _ := labels(t, client, "shop"); (len(l) == 1) != row.renews {
					t.Errorf("it has %v", l)
				}
			})
		})
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "shop", errors.New("it was changed"))
}

func TestNewRefuses(t *testing.T) {
	whole := breakglass.Options{Client: cluster(t), Label: label, Observer: &said{}, Memory: &shelf{}}
	if _, err := breakglass.New(whole); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]func(*breakglass.Options){
		"no client":   func(o *breakglass.Options) { o.Client = nil },
		"no label":    func(o *breakglass.Options) { o.Label = "" },
		"no observer": func(o *breakglass.Options) { o.Observer = nil },
		"no memory":   func(o *breakglass.Options) { o.Memory = nil },
	} {
		o := whole
		change(&o)
		if _, err := breakglass.New(o); err == nil {
			t.Errorf("%s: it is made", reason)
		}
	}
}

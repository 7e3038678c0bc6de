package breakglass

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

const (
	// again is how often all is looked at anew, where no watch tells of anything; retry is
	// the pause after a failure, and pause the least one.
	again, retry, pause = time.Minute, 5 * time.Second, 200 * time.Millisecond
	// timeout bounds one request, but for the watch.
	timeout = 10 * time.Second
	// MaxRemembered is how many open namespaces are remembered across restarts, at some
	// 900 bytes each: a Lease's annotations hold 256 KiB. Of further ones a new leader tells
	// again that they were opened.
	MaxRemembered = 200
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Observer is told what became of namespaces, once each where the memory works.
type Observer interface {
	// Opened tells of one that was opened; again: it was open, and the reason, the end or
	// who opened it has changed.
	Opened(o Opening, again bool)
	// Closed tells of one that is not open any more.
	Closed(o Opening, why Why)
	// Failed tells of what is tried again.
	Failed(err error)
}

// Memory keeps which namespaces were open for who leads next.
type Memory interface {
	Load(ctx context.Context) ([]Opening, error)
	Save(ctx context.Context, open []Opening) error
}

// Options are what a Keeper needs. What is not said to be optional is required.
type Options struct {
	Client metadata.Interface
	// Label opens a namespace, whatever its value.
	Label    string
	Observer Observer
	Memory   Memory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Keeper closes namespaces whose time is over. Make one with New, and Run it on one
// replica. Open is safe for concurrent use.
type Keeper struct {
	options Options

	mu    sync.Mutex
	known map[string]Opening // by UID; replaced, never changed
}

// New makes a Keeper; it refuses options without what is required.
func New(o Options) (*Keeper, error) {
	if o.Client == nil || o.Label == "" || o.Observer == nil || o.Memory == nil {
		return nil, errors.New("break glass: the client, the label, the observer and the memory are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{options: o}, nil
}

// Open returns the namespaces that are open, those that end first before the others, as
// the last look saw them; none where this Keeper does not run.
func (k *Keeper) Open() []Opening {
	k.mu.Lock()
	defer k.mu.Unlock()
	return inOrder(k.known)
}

func inOrder(open map[string]Opening) []Opening {
	return slices.SortedFunc(maps.Values(open), func(a, b Opening) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// Run keeps the namespaces until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	defer k.set(nil)
	var known map[string]Opening
	for known == nil {
		loaded, err := k.load(ctx)
		if err != nil {
			k.failed(ctx, fmt.Errorf("which namespaces were open: %w", err))
			if !wait(ctx, retry) {
				return
			}
			continue
		}
		known = loaded
	}
	saved := maps.Clone(known)
	for ctx.Err() == nil {
		seen, err := k.list(ctx)
		if err != nil {
			k.failed(ctx, fmt.Errorf("list open namespaces: %w", err))
			wait(ctx, retry)
			continue
		}
		failed := k.turn(ctx, seen.Items, known)
		k.set(maps.Clone(known))
		if !maps.EqualFunc(known, saved, Opening.same) {
			if err := k.save(ctx, known); err != nil {
				k.failed(ctx, fmt.Errorf("remember which namespaces are open: %w", err))
				failed = true
			} else {
				saved = maps.Clone(known)
			}
		}
		k.await(ctx, seen.ResourceVersion, known, failed)
	}
}

func (k *Keeper) set(known map[string]Opening) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = known
}

func (k *Keeper) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		k.options.Observer.Failed(err)
	}
}

// turn tells what has changed since the last one, and closes what must be closed. It
// reports whether something is to be tried again.
func (k *Keeper) turn(ctx context.Context, seen []metav1.PartialObjectMetadata, known map[string]Opening) (failed bool) {
	there := make(map[string]bool, len(seen))
	for i := range seen {
		of := &seen[i].ObjectMeta
		o, why := Judge(k.options.Label, of, k.options.Now())
		there[o.UID] = true
		if before, was := known[o.UID]; !was || !before.same(o) {
			k.options.Observer.Opened(o, was)
			known[o.UID] = o
		}
		if why == "" {
			continue
		}
		switch err := k.close(ctx, of); {
		case err == nil:
			delete(known, o.UID)
			k.options.Observer.Closed(o, why)
		case apierrors.IsNotFound(err):
			there[o.UID] = false
		default:
			// Also where it was changed a moment ago: the next look sees how it is now.
			failed = true
			if !apierrors.IsConflict(err) {
				k.failed(ctx, fmt.Errorf("close the namespace %s (%s): %w", o.Namespace, why, err))
			}
		}
	}
	for _, o := range inOrder(known) {
		if !there[o.UID] {
			delete(known, o.UID)
			k.options.Observer.Closed(o, Removed)
		}
	}
	return failed
}

// close takes the label and its annotations off a namespace, if they still are as they
// were seen. What else of it changes meanwhile does not matter: who may change the
// namespace, and not its label, could keep it open else by changing it all the time.
func (k *Keeper) close(ctx context.Context, of *metav1.ObjectMeta) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	label := k.options.Label
	patch := []operation{{Op: "test", Path: "/metadata/uid", Value: string(of.UID)}}
	patch = append(patch, takeOff("/metadata/labels/", label, of.Labels)...)
	for _, suffix := range []string{reasonSuffix, untilSuffix, bySuffix} {
		patch = append(patch, takeOff("/metadata/annotations/", label+suffix, of.Annotations)...)
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = k.options.Client.Resource(namespaces).Patch(ctx, of.Name, types.JSONPatchType, text, metav1.PatchOptions{})
	return err
}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// takeOff removes an entry that is there, if it still is as it was seen.
func takeOff(at, key string, of map[string]string) []operation {
	value, is := of[key]
	if !is {
		return nil
	}
	path := at + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	return []operation{{Op: "test", Path: path, Value: value}, {Op: "remove", Path: path}}
}

func (k *Keeper) list(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return k.options.Client.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: k.options.Label})
}

func (k *Keeper) load(ctx context.Context) (map[string]Opening, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := k.options.Memory.Load(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]Opening, len(list))
	for _, o := range list {
		known[o.UID] = o
	}
	return known, nil
}

func (k *Keeper) save(ctx context.Context, known map[string]Opening) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := inOrder(known)
	return k.options.Memory.Save(ctx, list[:min(len(list), MaxRemembered)])
}

// await returns when there may be something to do: a namespace was opened, changed or
// closed, the time of one is over, or long enough has passed. It lasts for a moment at
// least, so that nobody who changes namespaces keeps the leader busy.
func (k *Keeper) await(ctx context.Context, version string, known map[string]Opening, failed bool) {
	if !wait(ctx, pause) {
		return
	}
	most := again
	if failed {
		most = retry
	}
	for _, o := range known {
		if !o.Until.IsZero() && !failed {
			most = min(most, o.Until.Sub(k.options.Now()))
		}
	}
	watching, stop := context.WithTimeout(ctx, max(most, 0))
	defer stop()
	w, err := k.options.Client.Resource(namespaces).Watch(watching, metav1.ListOptions{LabelSelector: k.options.Label, ResourceVersion: version})
	if err != nil {
		if watching.Err() == nil {
			k.failed(ctx, fmt.Errorf("watch open namespaces: %w", err))
			wait(watching, retry)
		}
		return
	}
	defer w.Stop()
	select {
	case <-watching.Done():
	case <-w.ResultChan():
	}
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

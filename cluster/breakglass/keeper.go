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
	// again is the interval of full lists in the absence of watch events, retry the pause after a
	// failure, and pause the minimum pause.
	again, retry, pause = time.Minute, 5 * time.Second, 200 * time.Millisecond
	// timeout bounds one request, except for the watch.
	timeout = 10 * time.Second
	// MaxRemembered bounds the open namespaces that are stored across restarts, at some 900 bytes
	// each: a Lease's annotations hold 256 KiB. A new leader reports further ones as opened
	// again.
	MaxRemembered = 200
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Observer receives each change of a namespace once, provided that the memory works.
type Observer interface {
	// Opened reports an opened namespace. again: it was open before, and its reason, expiry or
	// user has changed.
	Opened(o Opening, again bool)
	// Closed reports a namespace that is no longer open.
	Closed(o Opening, why Why)
	// Failed reports an error that is retried.
	Failed(err error)
}

// Memory stores the open namespaces for the next leader.
type Memory interface {
	Load(ctx context.Context) ([]Opening, error)
	Save(ctx context.Context, open []Opening) error
}

// Options are the dependencies of a Keeper. Fields are required unless marked as optional.
type Options struct {
	Client metadata.Interface
	// Label is the label that opens a namespace with any value.
	Label    string
	Observer Observer
	Memory   Memory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Keeper closes expired namespaces. Create one with New, and Run it on one replica. Open is safe
// for concurrent use.
type Keeper struct {
	options Options

	mu    sync.Mutex
	known map[string]Opening // by UID; replaced, never modified
}

// New creates a Keeper, and returns an error for a missing required option.
func New(o Options) (*Keeper, error) {
	if o.Client == nil || o.Label == "" || o.Observer == nil || o.Memory == nil {
		return nil, errors.New("break glass: the client, the label, the observer and the memory are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{options: o}, nil
}

// Open returns the open namespaces as of the last list, sorted by expiry; none where this Keeper
// does not run.
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

// Run manages the namespaces until ctx ends.
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

// turn reports the changes since the last turn, and closes namespaces that must be closed. It
// reports whether a retry is needed.
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
			// Also after a concurrent change: the next list has the current state.
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

// close removes the label and its annotations from a namespace, if they are unchanged. It ignores
// other concurrent changes: otherwise a user with write access to the namespace, but not to its
// label, could keep it open by changing it continuously.
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

// takeOff removes an existing entry, if it is unchanged.
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

// await returns when there may be work: a namespace was opened, changed or closed, one has
// expired, or the interval has passed. It has a minimum duration, so that frequent changes of
// namespaces cannot saturate the leader.
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

// wait waits, and reports whether it finished before ctx ended.
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

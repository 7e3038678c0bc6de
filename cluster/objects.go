package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// DefaultObjectTTL is the cache lifetime of responses of Objects: long enough for both
	// webhooks and all containers of one admission, and short enough for policies to see changes
	// soon.
	DefaultObjectTTL = 5 * time.Second
	// minDiscovery is the minimum time between two discoveries for unknown kinds: expressions and
	// parameters may name kinds that never exist.
	minDiscovery = 10 * time.Second
	// maxObject and maxList bound one response in bytes of JSON, which take about ten times as
	// much in memory; etcd limits objects to 1.5 MiB.
	maxObject = 2 << 20
	maxList   = 4 << 20
	// maxListed bounds the objects of one list. A longer list is an error, since a truncated one
	// would imply that the others do not exist.
	maxListed = 2000
	// maxObjects bounds the cache, in bytes of JSON.
	maxObjects = 4 << 20
)

// Place identifies an object, or the objects of a list.
type Place struct {
	// Group is empty for the core group; Resource is the plural, with a subresource after a
	// slash.
	Group, Version, Resource string
	// Namespace is empty for cluster-scoped objects, and for a list of all namespaces. Name is
	// empty for a list.
	Namespace, Name string
}

// String returns resource.group.
func (p Place) String() string {
	return schema.GroupResource{Group: p.Group, Resource: p.Resource}.String()
}

// Objects reads any objects that the gateway's own permissions cover, for expressions of
// policies; Secrets are refused. Each response is bounded and cached for seconds. Errors are
// *Error, except for an invalid place. It is safe for concurrent use. Create one with NewObjects.
type Objects struct {
	raw    rest.Interface
	mapper meta.ResettableRESTMapper
	ttl    time.Duration
	memory *cache.Cache[objectsKey, objectsAnswer]
	flight *cache.Flight[objectsKey, map[string]any]
	kinds  *cache.Flight[schema.GroupVersionKind, *meta.RESTMapping]
	now    func() time.Time
	resets struct { // of the mapper, which caches its first discovery
		sync.Mutex
		last time.Time
	}
}

type objectsKey struct {
	Place
	labels string
	verb   string // of a request without a name that is no list
}

type objectsAnswer struct {
	object map[string]any
	err    error
	cost   int
}

// ObjectOptions are the dependencies of Objects.
type ObjectOptions struct {
	// Client is required.
	Client *Client
	// TTL is the cache lifetime of a response; 0 means 5 s, and negative values are an error.
	TTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// NewObjects creates Objects, and returns an error for invalid options.
func NewObjects(o ObjectOptions) (*Objects, error) {
	if o.Client == nil || o.TTL < 0 {
		return nil, errors.New("objects: Client is required, and the TTL must not be below 0")
	}
	if o.TTL == 0 {
		o.TTL = DefaultObjectTTL
	}
	memory, err := cache.New(cache.Options[objectsKey, objectsAnswer]{
		MaxCost: maxObjects, MaxTTL: o.TTL, Now: o.Now,
		Cost: func(key objectsKey, a objectsAnswer) int { return len(key.labels) + a.cost + absentCost },
	})
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	made := &Objects{raw: o.Client.raw, mapper: o.Client.Mapper, ttl: o.TTL, memory: memory, now: o.Now}
	var errs [2]error
	made.flight, errs[0] = cache.NewFlight[objectsKey, map[string]any](lookupTimeout)
	made.kinds, errs[1] = cache.NewFlight[schema.GroupVersionKind, *meta.RESTMapping](lookupTimeout)
	return made, errors.Join(errs[:]...)
}

// Close stops the goroutines that evict expired entries.
func (o *Objects) Close() { o.memory.Close() }

// Get returns one object as JSON. It is shared and must not be modified.
func (o *Objects) Get(ctx context.Context, at Place) (map[string]any, error) {
	if at.Name == "" {
		return nil, fmt.Errorf("%s: an object without a name", at)
	}
	return o.read(ctx, objectsKey{Place: at}, maxObject)
}

// List returns the list object of all objects with the labels, each with its kind. It is shared
// and must not be modified. A list that exceeds the bounds is an error, never truncated.
func (o *Objects) List(ctx context.Context, at Place, having map[string]string) (map[string]any, error) {
	if at.Name != "" {
		return nil, fmt.Errorf("%s: a list of one name", at)
	}
	selector, err := labels.ValidatedSelectorFromSet(having)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return o.read(ctx, objectsKey{Place: at, labels: selector.String()}, maxList)
}

func (o *Objects) read(ctx context.Context, key objectsKey, most int64) (map[string]any, error) {
	if err := key.check(); err != nil {
		return nil, err
	}
	if known, ok := o.memory.Get(key); ok {
		return known.object, known.err
	}
	object, err := o.flight.Do(ctx, key, func(ctx context.Context) (map[string]any, error) {
		object, size, err := o.fetch(ctx, key, most)
		if err == nil || !errors.Is(err, ErrUnavailable) {
			o.memory.Put(key, objectsAnswer{object: object, err: err, cost: size}, o.ttl)
		}
		return object, err
	})
	return object, key.classify(err)
}

func (o *Objects) fetch(ctx context.Context, key objectsKey, most int64) (map[string]any, int, error) {
	request := o.raw.Get().AbsPath(key.path()...)
	if key.Name == "" {
		request = request.Param("limit", fmt.Sprint(maxListed))
		if key.labels != "" {
			request = request.Param("labelSelector", key.labels)
		}
	}
	object, size, err := ask(ctx, request, most, key.String())
	if err == nil && key.Name == "" && continued(complete(object)) != "" {
		err = fmt.Errorf("there are more than %d of them, which is the bound", maxListed)
	}
	return object, size, key.classify(err)
}

// Review creates an authorization review, which changes nothing. Objects that would be stored are
// refused.
func (o *Objects) Review(ctx context.Context, at Place, question map[string]any) (map[string]any, error) {
	if at.Group != "authorization.k8s.io" || !strings.HasSuffix(at.Resource, "reviews") || at.Name != "" {
		return nil, fmt.Errorf("%s: only reviews of authorization.k8s.io are made for policies: a request must change nothing in the cluster", at)
	}
	key := objectsKey{Place: at}
	if err := key.check(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	object, _, err := ask(ctx, o.raw.Post().AbsPath(key.path()...).SetHeader("Content-Type", "application/json").Body(body), maxObject, at.String())
	return object, key.classify(err)
}

// Kind returns the resource of a kind.
func (o *Objects) Kind(ctx context.Context, kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	mapping, err := o.mapping(ctx, kind)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// Namespaced reports whether the objects of a kind are in namespaces.
func (o *Objects) Namespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	mapping, err := o.mapping(ctx, kind)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (o *Objects) mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := o.kinds.Do(ctx, kind, func(context.Context) (*meta.RESTMapping, error) {
		mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) && o.reset() {
			mapping, err = o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
		return mapping, err
	})
	switch {
	case meta.IsNoMatchError(err):
		err = &Error{Kind: "kind", Name: kind.String(), Reason: ErrNotFound, Cause: err}
	case err != nil:
		err = &Error{Kind: "kind", Name: kind.String(), Reason: ErrUnavailable, Cause: err}
	}
	return mapping, err
}

// reset repeats the discovery of kinds, because a kind may be newer than the last one. Its rate
// is limited, since requests may name kinds that do not exist.
func (o *Objects) reset() bool {
	o.resets.Lock()
	defer o.resets.Unlock()
	if now := o.now(); now.Sub(o.resets.last) >= minDiscovery {
		o.resets.last = now
		o.mapper.Reset()
		return true
	}
	return false
}

// ask reads a bounded JSON object.
func ask(ctx context.Context, request *rest.Request, most int64, what string) (map[string]any, int, error) {
	body, err := request.SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, 0, err
	}
	return decode(body, most, what)
}

func decode(body io.ReadCloser, most int64, what string) (map[string]any, int, error) {
	raw, err := limit.ReadAll(body, most, what)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, 0, err
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, 0, err
	}
	return object, len(raw), nil
}

// check rejects invalid places: parts of them come from objects, and must not lead to another
// path.
func (k objectsKey) check() error {
	resource, sub, _ := strings.Cut(k.Resource, "/")
	labels := []string{k.Version, resource}
	for _, part := range []string{sub, k.Namespace} {
		if part != "" {
			labels = append(labels, part)
		}
	}
	wrong := slices.ContainsFunc(labels, func(s string) bool { return len(validation.IsDNS1123Label(s)) > 0 }) ||
		k.Group != "" && len(validation.IsDNS1123Subdomain(k.Group)) > 0 || k.Name != "" && len(content.IsPathSegmentName(k.Name)) > 0 ||
		sub != "" && k.Name == "" && k.Group != "authorization.k8s.io"
	switch {
	case wrong:
		return fmt.Errorf("no object can be at %q", []string{k.Group, k.Version, k.Resource, k.Namespace, k.Name})
	case isSecret(strings.Split(strings.Join(k.path(), "/"), "/")[1:]):
		return fmt.Errorf("%s: Secrets are not shown to expressions of policies", k.Place)
	}
	return nil
}

// path is the path of the place in the API.
func (k objectsKey) path() []string {
	segments := []string{"/api", k.Version}
	if k.Group != "" {
		segments = []string{"/apis", k.Group, k.Version}
	}
	if k.Namespace != "" {
		segments = append(segments, "namespaces", k.Namespace)
	}
	resource, sub, _ := strings.Cut(k.Resource, "/")
	segments = append(segments, resource)
	if k.Name != "" {
		segments = append(segments, k.Name)
	}
	if sub != "" {
		segments = append(segments, sub)
	}
	return segments
}

// classify converts any error to an *Error.
func (k objectsKey) classify(err error) error {
	if known := (*Error)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	made := &Error{Kind: k.String(), Namespace: k.Namespace, Name: cmp.Or(k.Name, "*"), Reason: ErrUnavailable, Cause: err}
	switch {
	case apierrors.IsNotFound(err):
		made.Reason = ErrNotFound
	case apierrors.IsForbidden(err):
		verb := "get"
		if k.Name == "" {
			verb = cmp.Or(k.verb, "list")
		}
		made.Reason, made.Right = ErrForbidden, verb+" on "+k.String()
	}
	return made
}

// continued returns the continue token of a list.
func continued(list map[string]any) string {
	metadata, _ := list["metadata"].(map[string]any)
	token, _ := metadata["continue"].(string)
	return token
}

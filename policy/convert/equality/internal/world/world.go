// Package world is the cluster in which both forms of a policy are evaluated: its objects are all that exist.
package world

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/cluster"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// World serves look-ups. It is not safe for a change of its objects while policies are evaluated.
type World struct {
	*cluster.Cluster
	fixed  []workload.Object
	live   *Live
	isLive bool
}

// Live are the look-ups of a cluster that runs. They are safe for concurrent use.
type Live struct {
	ConfigMaps rulecontext.Lookup
	Resources  cel.Resources
	Caller     Caller
	// Labels returns the labels of a namespace; false if they are unknown.
	Labels func(namespace string) (map[string]string, bool)
}

// Caller calls the API server.
type Caller interface {
	API(ctx context.Context, call rulecontext.APICall) (any, error)
}

// New returns a World with objects that always exist, and the cluster that takes its place; nil for none.
func New(fixed []workload.Object, live *Live) *World {
	w := &World{Cluster: cluster.New(constraint.Known()), live: live}
	w.Add(fixed...)
	w.fixed = w.Objects
	return w
}

// Set replaces the objects that exist besides the fixed ones.
func (w *World) Set(objects []workload.Object) {
	w.Objects = append(w.fixed[:len(w.fixed):len(w.fixed)], objects...)
}

// SetLive has the cluster that runs serve the look-ups, or the objects again.
func (w *World) SetLive(is bool) { w.isLive = is && w.live != nil }

// ConfigMap implements rulecontext.Lookup.
func (w *World) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	if w.isLive {
		return w.live.ConfigMaps.ConfigMap(ctx, namespace, name)
	}
	return w.Cluster.ConfigMap(ctx, namespace, name)
}

// Get implements cel.Resources.
func (w *World) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	if w.isLive {
		return w.live.Resources.Get(ctx, of)
	}
	return w.Cluster.Get(ctx, of)
}

// List implements cel.Resources.
func (w *World) List(ctx context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	if w.isLive {
		return w.live.Resources.List(ctx, of, labels)
	}
	return w.Cluster.List(ctx, of, labels)
}

// Kind implements cel.Resources.
func (w *World) Kind(ctx context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	if w.isLive {
		return w.live.Resources.Kind(ctx, apiVersion, kind)
	}
	return w.Cluster.Kind(ctx, apiVersion, kind)
}

// Post implements cel.Resources: nothing is made.
func (w *World) Post(_ context.Context, of cel.ResourceRef, _ map[string]any) (map[string]any, error) {
	return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s: this check makes no object", of.Resource)}}
}

// Use serves the look-ups of compilers and evaluators.
func (w *World) Use(options *engine.CompilerOptions, config *evaluation.Config) {
	options.ConfigMaps, options.Resources, options.Caller, options.Images = w, w, w, w
	config.Existing.Sources = evaluation.Sources{Resources: w}
	config.Labels = func(namespace string) (map[string]string, bool) {
		if w.isLive {
			return w.live.Labels(namespace)
		}
		return w.Labels(namespace), true
	}
}

// ImageData implements rulecontext.Images: the data in one of the objects of its kind.
func (w *World) ImageData(_ context.Context, reference string, _ policy.Credentials) (map[string]any, error) {
	if w.isLive {
		return nil, errors.New("this check asks no registry")
	}
	var all []workload.Object
	for _, o := range w.Objects {
		if of := (facts.Lookup{Group: o.Group(), Kind: o.Kind()}); of.IsImageData() {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no image %s", reference)
	}
	data, _ := all[len(reference)%len(all)].Content()["data"].(map[string]any)
	return facts.ImageDataWith(data, sampling.Now()), nil
}

// Metadata implements cel.ImageData.
func (w *World) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	return w.ImageData(ctx, reference, policy.Credentials{})
}

var errUnknown = errors.New("this check answers requests for objects and lists alone")

// API implements rulecontext.Caller. Unlike in a suite, a list without objects is empty.
func (w *World) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	of, ok := facts.Requested(call.Path)
	switch {
	case call.Method != "GET": //nolint:usestdlibvars // no package of policies imports net/http; it might change the cluster
		return nil, errUnknown
	case w.isLive:
		return w.live.Caller.API(ctx, call)
	case !ok:
		return nil, errUnknown
	}
	ref := cel.ResourceRef{Group: of.Group, Version: of.Version, Resource: strings.ToLower(of.Resource), Namespace: of.Namespace, Name: of.Name}
	_, query, _ := strings.Cut(call.Path, "?")
	if ref.Name != "" && query == "" {
		return w.Get(ctx, ref)
	}
	by, err := selector(query)
	if err != nil || ref.Name != "" {
		return nil, errUnknown
	}
	return w.List(ctx, ref, by)
}

// selector reads the label selector of a query, which has equalities alone.
func selector(query string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	by, err := labels.ConvertSelectorToLabelsMap(values.Get("labelSelector"))
	for name := range values {
		if name != "labelSelector" {
			return nil, errUnknown
		}
	}
	return by, err
}

package rulecontext

import (
	"context"

	"github.com/quaymaster/quaymaster/policy"
)

// Lookup reads ConfigMaps from the cluster.
type Lookup interface {
	// ConfigMap returns the object as JSON. A ConfigMap that is not there is an
	// error.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error)
}

// Caller makes the calls of apiCall. Answers are decoded JSON; the implementation bounds their
// size and their time. An unsuccessful answer is an error.
type Caller interface {
	// API calls the Kubernetes API server.
	API(ctx context.Context, call APICall) (any, error)
	// Service calls a service over HTTP. Nothing that the caller may do by itself,
	// such as a token of its own, is to be attached.
	Service(ctx context.Context, call ServiceCall) (any, error)
}

// APICall is a call of the Kubernetes API server.
type APICall struct {
	// Method is GET or POST.
	Method string
	// Path is absolute and canonical, as CheckPath requires, with its query.
	Path string
	// Body is decoded JSON; nil with GET.
	Body any
}

// ServiceCall is a call of a service.
type ServiceCall struct {
	// Method is GET or POST.
	Method string
	// URL has the scheme https or http, and a host.
	URL string
	// CABundle is PEM of the certificates that the server is trusted by; empty means
	// those of the system.
	CABundle string
	// Headers are those of the policy, by their names.
	Headers map[string]string
	// Body is decoded JSON; nil with GET.
	Body any
}

// Images reads image data from registries.
type Images interface {
	// ImageData returns a registry's data for an image, as decoded JSON: image, resolvedImage,
	// registry, repository, identifier, manifest and configData.
	ImageData(ctx context.Context, reference string, credentials policy.Credentials) (map[string]any, error)
}

// Globals returns the entries of GlobalContextEntry documents.
type Globals interface {
	// Global returns the data of an entry, or of a projection of one, by its name: as
	// decoded JSON. An entry that is not there, or has no data yet, is an error.
	Global(ctx context.Context, name string) (any, error)
}

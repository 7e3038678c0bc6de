package cel

import "context"

// Outside implements the functions that need more data than the request holds. It is supplied per
// evaluation; if a member is nil, calling its functions is an *UnknownError. An implementation
// returns decoded JSON (map[string]any, []any, string, bool, int64, float64, nil), which is not
// changed. It returns an *UnknownError for data that it could not read; any other error is a
// fault of the call.
type Outside struct {
	Resources     Resources
	HTTP          HTTP
	GlobalContext GlobalContext
	Images        ImageData
}

// Resources answers resource.Get, List and Post.
type Resources interface {
	// Get returns one object. One that is not there is an error, as in Kyverno, and wraps ErrNotFound.
	Get(ctx context.Context, ref ResourceRef) (map[string]any, error)
	// List returns a list object, with items. Without labels it lists all.
	List(ctx context.Context, ref ResourceRef, labels map[string]string) (map[string]any, error)
	// Post creates the object of an expression, such as a SubjectAccessReview, and returns the
	// answer.
	Post(ctx context.Context, ref ResourceRef, object map[string]any) (map[string]any, error)
	// Kind returns the resource of a kind, for resource.ToGVR.
	Kind(ctx context.Context, apiVersion, kind string) (group, version, resource string, err error)
}

// ResourceRef names one object, or with an empty Name the objects of a resource.
type ResourceRef struct {
	Group, Version string
	// Resource is the plural, lower-case name, with a subresource after a slash.
	Resource string
	// Namespace is empty for cluster-scoped resources. In a Namespaced environment it is always
	// the namespace of the policy.
	Namespace string
	Name      string
}

// HTTP answers http.Get, Post and Put.
type HTTP interface {
	Do(ctx context.Context, request HTTPRequest) (any, error)
}

// HTTPRequest is one call that an expression makes.
type HTTPRequest struct {
	// Method is GET, POST or PUT.
	Method  string
	URL     string
	Headers map[string]string
	// Body is decoded JSON; nil with GET.
	Body any
	// CABundle is PEM of the certificates that the server is trusted by; empty
	// means those of the system.
	CABundle string
}

// GlobalContext answers globalContext.Get.
type GlobalContext interface {
	// Get returns the data of an entry, or with a projection that part of it.
	Get(ctx context.Context, name, projection string) (any, error)
}

// ImageData answers image.GetMetadata.
type ImageData interface {
	// Metadata returns the registry's data for an image: image, resolvedImage, registry,
	// repository, identifier, manifest, configData and so on.
	Metadata(ctx context.Context, reference string) (map[string]any, error)
}

package native

const (
	// maxBindings bounds the bindings of one policy: each is compared with each object.
	maxBindings = 1000
	// maxParameters bounds the parameters of one binding: the policy is evaluated with each of them.
	maxParameters = 1000
	// maxAnnotations bounds spec.auditAnnotations, as the API server does.
	maxAnnotations = 20
)

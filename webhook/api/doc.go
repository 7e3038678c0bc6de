// Package api answers: what does the gateway say to a program that is no
// Kubernetes API server?
//
// A Handler is POST /api/v1/verify: images by name, or manifests, judged as an
// admission request is, with the versioned record of package report as the answer.
// It is for build systems and nodes that would rather call than install. Bearer
// tokens follow RFC 6750, the media type of manifests RFC 9512.
//
// A denial is an answer, so its status is 200: an error status means that nobody
// judged. Who reads only the status therefore admits nothing by accident that a
// record would have refused; docs/api.md says how to read it.
//
// Whoever may call can name any namespace and any image. So the credentials that
// an object names for its own pulls are never used: registries are asked with the
// gateway's own, and with those that a policy names.
package api

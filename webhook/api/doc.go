// Package api serves image verification to programs other than the Kubernetes API server.
//
// A Handler implements POST /api/v1/verify. It evaluates images by name, or manifests, in the same
// way as an admission request, and returns the versioned record of package report. Build systems
// and nodes can use it instead of installing the CLI. Bearer tokens follow RFC 6750, the media type
// of manifests RFC 9512.
//
// A denial has status 200, because it is a valid result. An error status means that no decision was
// made. A client that requires both 200 and a record that allows fails closed; docs/api.md
// describes how to read the record.
//
// A caller can name any namespace and any image. Therefore the pull credentials of objects are
// never used. Requests to registries use the gateway's own credentials and those that a policy
// names.
package api

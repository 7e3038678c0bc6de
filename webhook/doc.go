// Package webhook answers: who may ask the gateway, over which connection, and
// when does it stop answering?
//
// A Server is two listeners. The doors speak HTTP/1.1 and HTTP/2 (RFC 9113) over
// TLS 1.2 or later, each on a path of its own and, where asked, only with
// callers that show a certificate. The plain one has /healthz, /readyz and
// /metrics; profiles are on a third, on loopback, when asked for. What is
// said at a door is the business of its handler: webhook/admission,
// webhook/peers.
//
// A drain loses no request: first the gateway says that it is not ready and
// goes on answering while the endpoints are updated; then it asks its callers to
// come back over another connection, which by now leads elsewhere; then it
// listens no more, ends what is at work, and leaves.
package webhook

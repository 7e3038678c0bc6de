// Package webhook implements the gateway's HTTPS server: client authentication, connection limits,
// health checks and graceful shutdown.
//
// A Server has up to three listeners. The endpoints use HTTP/1.1 and HTTP/2 (RFC 9113) over TLS 1.2
// or later. Each has its own path and may require a client certificate. The plain listener serves
// /healthz, /readyz and /metrics. Profiles, if enabled, have a third listener, on loopback.
// Handlers such as webhook/admission and webhook/peers implement the endpoints' protocols.
//
// A drain loses no request. The server first reports that it is not ready and keeps answering while
// the Service's endpoints are updated. It then asks clients to reconnect, which by now reaches
// other replicas. Finally it closes the listeners, completes the requests in flight and stops.
package webhook

// Package probe finds out which API servers have loaded the gateway's webhook
// configurations.
//
// Each configuration has a webhook for labelled ConfigMaps at a path with a mark of
// the configuration. The endpoint at that path returns the mark as a warning. So the
// response to a dry-run create names the configurations that the API server has loaded:
// it loads a configuration whole or not at all. The response comes back to the client
// whichever replica of the gateway was called.
//
// A cluster can have several API servers, each with a view of its own. The Prober sends
// one create to every address in the EndpointSlice default/kubernetes. Where addresses
// are unknown or cannot be reached, it sends ServiceRequests creates over connections of
// their own to the address of its client configuration; a load balancer decides which
// API servers these reach, so that one of them may be left out.
package probe

// Package endpoints holds the parts of the endpoints that depend on the current policies and
// mirrors: their results without a decision, the checks of documents, the modes, responses that
// wait for the decision log, and the unix socket.
package endpoints

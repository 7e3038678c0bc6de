// Package endpoints makes the endpoints of the gateway: the placeholders before they are active, the
// webhooks of the API server in both modes, those of other systems, and the unix socket. It holds the
// parts that depend on the current policies and mirrors: results without a decision, the checks of
// documents, and responses that wait for the decision log.
package endpoints

// Package record stores which policies the API server evaluates itself, in place of the gateway. Two ConfigMaps in
// the gateway's namespace (core/v1) are all that the two sides exchange: the role native writes the one, and the
// leader that keeps the webhook configurations writes the other, so that neither account needs the other's permissions.
package record

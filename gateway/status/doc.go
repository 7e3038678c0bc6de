// Package status reports the state of policies and of the documents next to them: every replica
// in its log, and the leader by the condition Ready (docs/gateway.md) and by Events. It determines
// which engine owns the status of a kind, and whether the API servers use the webhook
// configurations that a policy needs.
package status

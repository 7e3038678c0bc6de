// Package lookups connects the gateway to the cluster: it makes the clients, and the look-ups of
// decisions, which are in folders when running standalone.
package lookups

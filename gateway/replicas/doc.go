// Package replicas maintains the list of the gateway's replicas. Replicas register in Leases, and
// read the verified claims of each other over an authenticated channel, or in a shared cache.
package replicas

// Package replicas is the component that knows the other replicas of the gateway. Replicas register
// in Leases, and read the verified claims of each other over an authenticated channel, or in a shared
// cache.
package replicas

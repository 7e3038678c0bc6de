// Package snapshots is the component that keeps verified claims over a restart: it restores the
// cache of a gate from a snapshot before the endpoints are active, and saves it from then on, in a
// folder or in Secrets.
package snapshots

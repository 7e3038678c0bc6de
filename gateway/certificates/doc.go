// Package certificates holds the serving certificate and the replicas' key, which is in a Secret in
// a cluster.
package certificates

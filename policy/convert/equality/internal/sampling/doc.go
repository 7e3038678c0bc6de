// Package sampling makes requests about objects, from the paths that policies read and the values that they compare,
// as an API server sends them (Kubernetes 1.37), and makes a request smaller.
package sampling

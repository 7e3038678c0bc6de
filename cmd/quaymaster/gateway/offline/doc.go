// Package offline reads the inputs of a gateway without running one: the command line evaluates
// the documents of a cluster, of folders or of a bundle as the gateway does.
package offline

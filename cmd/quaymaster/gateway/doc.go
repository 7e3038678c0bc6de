// Package gateway starts, runs and stops the gateway.
//
// It reads the configuration (quaymaster.dev/v1alpha1 Configuration), builds the engine, the
// endpoints and the background tasks, and runs them until its context ends. It contains only
// wiring; the decisions are made in other packages.
package gateway

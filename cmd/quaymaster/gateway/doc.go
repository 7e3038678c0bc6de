// Package gateway answers: how does the gateway come to life, and how does it
// leave?
//
// It reads the configuration (quaymaster.dev/v1alpha1 Configuration), builds the
// engine, the doors and what runs beside them, and runs all of it until it is
// told to stop. It is wiring: nothing is decided here.
package gateway

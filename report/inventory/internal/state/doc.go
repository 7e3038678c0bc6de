// Package state keeps the results of an image for the workloads that run it, and shows the gravest.
package state

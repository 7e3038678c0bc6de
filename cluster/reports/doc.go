// Package reports answers: how do reports get into the cluster, and for which workload
// does a pod run?
//
// Store reads and writes the objects of an API of reports for package publish, under
// their resource version. Workloads follows controllers from a pod's to the one that
// people know, by metadata alone. Neither watches anything, so that their memory does
// not grow with what is in the cluster. It follows PolicyReport v1alpha2 of
// wgpolicyk8s.io, Report v1alpha1 of openreports.io and the API of Kubernetes 1.36.
package reports

// Package reports stores reports in the cluster, and looks up the workloads of pods.
//
// Store reads and writes the objects of an API of reports for package publish, under their
// resourceVersion. Workloads follows the controllers of a pod to the root, by metadata alone.
// Neither watches, so their memory does not grow with the cluster. It follows PolicyReport
// v1alpha2 of wgpolicyk8s.io, Report v1alpha1 of openreports.io and the API of Kubernetes 1.37.
package reports

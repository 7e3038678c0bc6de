// Package e2e asks the product's real binary, in front of a real Kubernetes API
// server, what users would ask it.
//
// etcd, kube-apiserver and kube-controller-manager are built once from Go
// modules (test/tools, by package peers) and run on loopback with certificates
// of their own. There are no nodes: pods are admitted and stay Pending.
//
//   - controlplane: the API server, identities for it, manifests in it
//   - gateway: quaymaster serve, its configuration, log and metrics
//   - harbour: a registry with signed and unsigned images, and policies for them
//   - balancer: what a Service is in front of several replicas
//   - process: a child that never outlives the test
//   - noop, bench: make bench-admission
package e2e

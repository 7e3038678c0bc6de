// Package e2e asks the product's real binary, in front of a real Kubernetes API
// server, what users would ask it.
//
// etcd, kube-apiserver and kube-controller-manager are built once from Go
// modules (test/tools, by package peers) and run on loopback with certificates
// of their own. There are no nodes: pods are admitted and stay Pending. Other callers
// are real, too: containerd's code that runs image verifiers, and the API server's
// plugin for images. redis-server is the system's; where it is not installed, the one
// test that needs it is skipped.
//
//   - controlplane: the API server, identities for it, manifests in it
//   - gateway: quaymaster serve, its configuration, log and metrics
//   - env: a registry with signed and unsigned images, policies for them, and
//     copies in another
//   - balancer: what a Service is in front of several replicas
//   - process: a child that never outlives the test
//   - nodes: a scheduler and kubelets, simulated
//   - noop, pair: the least that a pair of webhooks costs
//   - bench, load: make bench-admission, make load
//   - chaos: make chaos and make soak; its line is a bad network, its checker has the
//     expected decisions, its trend distinguishes growth from noise
//
// QUAYMASTER_OLDEST=1 has the tests that share a control plane run at the oldest API server
// that the charts allow.
package e2e

// Package keychain answers: with which credential is a workload's image looked
// at?
//
// The places are asked in order: the pod's imagePullSecrets, those of its
// service account, the Secrets that the policy names, the Secrets of the
// gateway, the cloud's credential providers (those that the policy names, then
// those of the gateway); without any, the registry is asked anonymously. The
// first place that knows the repository wins, and is named when it is refused.
// Among the Secrets of one place the most specific entry wins.
//
// What a place says is one of three things. It has a credential, or not: a
// Secret that is missing, of another type or unreadable has none, as the kubelet
// sees it, and is noted in the refusal that may follow. Or it could not be
// looked at. If no other place has a credential, that is an error, never an
// anonymous request; if a later one has, it is used, and a refusal by it, or an
// image that it does not find, remains could-not-look.
//
// Secrets hold Docker's configuration as the kubelet of Kubernetes 1.36 reads
// it (kubernetes.io/dockerconfigjson, kubernetes.io/dockercfg; hosts with
// wildcards, paths as prefixes). Credential helpers that they name are never
// run.
package keychain

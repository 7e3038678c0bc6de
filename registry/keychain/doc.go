// Package keychain selects the registry credential for a workload's image.
//
// The sources are consulted in order: the pod's imagePullSecrets, those of its service
// account, the Secrets that the policy names, the Secrets of the gateway, the cloud's
// credential providers (those that the policy names, then those of the gateway); without
// any, the request is anonymous. The first source with an entry for the repository is
// used, and is named in a refusal. Among the Secrets of one source the most specific entry
// is used.
//
// A lookup in a source has one of three results: a credential, none, or a failure. A
// Secret that is missing, of another type or unreadable has none, as for the kubelet, and
// is noted in the refusal that may follow. If a lookup fails and no other source has a
// credential, that is an error, never an anonymous request. If a later source has one, it
// is used; a refusal of it, or an image that it does not find, is then an error, too,
// since the missing credential might have more rights.
//
// Secrets hold Docker's configuration as the kubelet of Kubernetes 1.36 reads it
// (kubernetes.io/dockerconfigjson, kubernetes.io/dockercfg; hosts with wildcards, paths as
// prefixes). Credential helpers that they name are never run.
package keychain

// Package manifests compiles validate.manifests of Kyverno rules: an object must be what a manifest
// says that trusted signers have signed.
//
// It compiles the field of kyverno.io/v1 (Kyverno 1.19) with attestors, annotationDomain, repository,
// ignoreFields and dryRun. The signatures are verified before any byte of a signed content is parsed,
// by an injected Signatures; the object is then compared with the manifest (package difference), and
// counts for a signer only if they are the same. The package opens no connection.
//
// It follows Kyverno with exceptions that are all stricter, which docs/kyverno-differences.md lists.
package manifests

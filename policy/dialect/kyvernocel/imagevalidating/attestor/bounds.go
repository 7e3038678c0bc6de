package attestor

// Bounds on input and cached data, each with its reason.
const (
	// maxEntries bounds attestors, attestations, identities, extensions and annotations: all of a
	// policy's are evaluated for each object.
	maxEntries = 100
	// maxKeys bounds the keys of one attestor: each is an authority of its own.
	maxKeys = 32
	// maxCertificates bounds the certificates in one text: building chains grows
	// with their number (CVE-2026-32280).
	maxCertificates = 32
	// maxPEM bounds keys and certificates in PEM, in bytes.
	maxPEM = 256 << 10
	// maxRoot bounds a trusted_root.json, in bytes, as Kyverno does.
	maxRoot = 1 << 20
	// maxFirstRoot bounds the first root.json of a TUF repository, in bytes, as
	// go-tuf does those that it fetches.
	maxFirstRoot = 512_000
	// maxTagPrefix leaves space for sha256-<64 letters>.sig in the 128 of a tag.
	maxTagPrefix = 52
	// maxVariants and maxVariantBytes bound the cached expression results of one attestor: one
	// entry for each tenant or image, in a usual policy.
	maxVariants     = 256
	maxVariantBytes = 8 << 20
	// maxRepositories bounds the TUF repositories that are read in the background for policies of
	// the whole cluster: one for each trusted private Sigstore instance.
	maxRepositories = 64
	// maxNamespaceRepositories bounds those for the policies of a namespace, so that it does
	// not take what others need, and maxSpreadRepositories those for all namespaces together.
	maxNamespaceRepositories = 8
	maxSpreadRepositories    = 256
)

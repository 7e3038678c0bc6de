package keychain

import "time"

// Every bound of this package, with its reason.
const (
	// maxFile bounds a docker configuration, in bytes: the maximum size of a Secret.
	maxFile = 1 << 20
	// maxEntries bounds the hosts of one configuration; a person has a handful.
	maxEntries = 1000
	// maxSecrets bounds the Secrets that are looked up for one image, for each source. The
	// Secrets above it are a lookup failure.
	maxSecrets = 20
	// maxTried is how many credentials are tried for one repository, from all
	// Secrets of one source or from one docker configuration: each that is refused
	// costs the registry up to three requests, and the author of a workload writes
	// the entries. Several tokens for one host are common, twenty are not.
	maxTried = 20
	// maxPages bounds the cached Secrets together, in bytes.
	maxPages = 16 << 20
	// pageAge evicts an unused Secret; its content is compared at each use.
	pageAge = time.Hour
	// maxHosts is how many hosts' entries are kept ready for one Secret.
	maxHosts = 64
	// maxClients bounds the clients, each of which keeps the tokens of one
	// credential for one repository (some kilobytes).
	maxClients = 4096
	// clientAge ends a client, and with it the tokens of a removed credential. It costs a
	// token for each repository.
	clientAge = time.Hour
	// maxProvided bounds the cached results of providers, by repository.
	maxProvided = 4096
	// providedAge is how long the result that a provider has a credential is cached; the
	// credential itself is requested whenever a token is fetched.
	providedAge = 10 * time.Minute
	// lackingAge is the same for a provider that has none. Cloud helpers say so
	// of failures, too, so it is short.
	lackingAge = time.Minute
	// providerTimeout is how long a provider may take; metadata services answer
	// in milliseconds.
	providerTimeout = 10 * time.Second
	// minKey is the length of a key for scopes, in bytes.
	minKey = 16
)

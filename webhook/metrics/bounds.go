package metrics

import "time"

// The bounds on labels and on traces.
const (
	// maxHosts bounds the registries that have series of their own: hosts are as
	// many as people write into image references. Further ones are "other".
	maxHosts = 100
	// maxPolicies bounds the policies that have; a cluster of a thousand is
	// measured. Further ones are "other".
	maxPolicies = 2000
	// maxMirrors bounds the documents of mirrors that have, and maxTargets the
	// registries of their targets: both are an administrator's.
	maxMirrors = 200
	maxTargets = 200
	// maxEntries bounds the GlobalContextEntries that have; there are no more.
	maxEntries = 100
	// maxOverrides bounds the ImageOverrides that have: they are for bad days.
	maxOverrides = 200
	// maxOpen bounds the open namespaces that have: they are for bad nights.
	maxOpen = 50
	// maxWords bounds the values of a label whose words are the gateway's own.
	maxWords = 32
	// maxLabel bounds a label's value, in bytes: a DNS name has 253, the name of a
	// policy with kind and namespace twice that.
	maxLabel = 600
	// other stands for what is beyond a bound.
	other = "other"

	// spanQueue bounds the spans in memory; further ones are dropped, and counted
	// nowhere but in the collector's gaps.
	spanQueue = 2048
	// exportTimeout bounds one delivery of spans.
	exportTimeout = 10 * time.Second
)

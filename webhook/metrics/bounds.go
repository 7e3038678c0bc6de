package metrics

// Limits of labels.
const (
	// maxHosts bounds the registries with their own series: image references may contain any number
	// of hosts. Further ones are "other".
	maxHosts = 100
	// maxPolicies bounds the policies with their own series; a cluster of a thousand is measured.
	// Further ones are "other".
	maxPolicies = 2000
	// maxMirrors bounds the mirror documents with their own series, and maxTargets the registries
	// of their targets. Administrators define both.
	maxMirrors = 200
	maxTargets = 200
	// maxEntries bounds the GlobalContextEntries with their own series. It is also the limit on
	// entries.
	maxEntries = 100
	// maxOverrides bounds the ImageOverrides with their own series. They are meant for exceptional
	// cases.
	maxOverrides = 200
	// maxOpen bounds the open namespaces with their own series. They are meant for emergencies.
	maxOpen = 50
	// maxWords bounds the values of a label that the gateway defines.
	maxWords = 32
	// maxLabel bounds a label's value, in bytes: a DNS name has 253, the name of a policy with kind
	// and namespace twice that.
	maxLabel = 600
	// other is the label value beyond a limit.
	other = "other"
)

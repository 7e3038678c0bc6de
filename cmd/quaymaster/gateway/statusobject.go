package gateway

import "github.com/quaymaster/quaymaster/cluster/record"

// clusterObject is the resource of a document of the cluster.
type clusterObject struct {
	record.Object
	generation int64 // metadata.generation
	// since is the first set that contains the current document; unpublished: none yet.
	since int64
}

const unpublished = -1

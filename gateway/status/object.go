package status

import "github.com/quaymaster/quaymaster/cluster/record"

// Object is the resource of a document of the cluster.
type Object struct {
	record.Object
	Generation int64 // metadata.generation
	// Since is the first set that contains the current document; unpublished: none yet.
	Since int64
}

// Unpublished is the Since of an object whose current document is in no set yet.
const Unpublished = -1

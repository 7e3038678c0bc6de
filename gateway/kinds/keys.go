package kinds

import (
	"github.com/quaymaster/quaymaster/cluster/document"
)

// FromCluster begins the keys of the cluster's documents in the catalog. It sorts after those of
// folders.
const FromCluster = "in-cluster"

// ClusterKey separates the cluster's documents from a folder's. Of two for the same name, the
// folder's has precedence: it is the operator's, and a user with write access to Policies in the
// cluster must not disable it.
func ClusterKey(key document.Key) string { return FromCluster + "/" + key.String() }

package verifytest

import (
	"bytes"
	"testing"

	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// The verifier of transparency-dev is another implementation of RFC 6962.
func TestTree(t *testing.T) {
	var tr tree
	var leaves [][]byte
	for size := int64(1); size <= 70; size++ {
		leaves = append(leaves, rfc6962.DefaultHasher.HashLeaf([]byte{byte(size)}))
		tr.add(leaves[size-1])
		root := tr.root(size)
		for leaf := range size {
			path := tr.path(leaf)
			if err := merkle.VerifyInclusion(rfc6962.DefaultHasher, uint64(leaf), uint64(size), leaves[leaf], path, root); err != nil {
				t.Fatalf("leaf %d of %d: %v", leaf, size, err)
			}
			if size == 1 {
				continue
			}
			path[0] = rfc6962.DefaultHasher.HashLeaf(path[0])
			if merkle.VerifyInclusion(rfc6962.DefaultHasher, uint64(leaf), uint64(size), leaves[leaf], path, root) == nil {
				t.Fatalf("leaf %d of %d: accepted with a changed hash", leaf, size)
			}
		}
	}
	if bytes.Equal(tr.root(69), tr.root(70)) {
		t.Error("trees of two sizes have one root")
	}
}

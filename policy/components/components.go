// Package components reads the packages in verified bills of materials of an image, for policies in every dialect
// and for requirements. Package sbom defines the formats.
package components

import (
	"errors"
	"fmt"
	"time"
	"weak"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/sbom"
	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	// cacheBytes bounds the parsed documents, in bytes: five at the bound of a document, some hundreds of others.
	cacheBytes = 128 << 20
	// cacheTTL is longer than the life of a verified claim by default, so that repeated requests parse nothing.
	cacheTTL = time.Hour
	// packageBytes is the size of a package without its texts.
	packageBytes = 600
)

// Cache keeps parsed documents. A nil Cache keeps none. It is safe for concurrent use.
type Cache struct {
	documents *cache.Cache[weak.Pointer[attest.Statement], parsed]
}

// parsed is a document, or why it is none.
type parsed struct {
	document *sbom.Document
	err      error
}

// NewCache makes a Cache.
func NewCache() (*Cache, error) {
	documents, err := cache.New(cache.Options[weak.Pointer[attest.Statement], parsed]{MaxCost: cacheBytes, MaxTTL: cacheTTL, Cost: cost})
	if err != nil {
		return nil, fmt.Errorf("cache of bills of materials: %w", err)
	}
	return &Cache{documents}, nil
}

func cost(_ weak.Pointer[attest.Statement], of parsed) int {
	size := packageBytes
	if of.document == nil {
		return size
	}
	for i := range of.document.Packages {
		p := &of.document.Packages[i]
		// The package URL is there as it was written and in parts.
		size += packageBytes + len(p.Name) + len(p.Version) + 3*len(p.URL) + len(p.License)
	}
	return size
}

// Parse parses the document of a verified statement, which must not change. The key is the statement itself and not
// its content: hashing a large document takes as long as other policies take to decide.
func (c *Cache) Parse(statement *attest.Statement) (*sbom.Document, error) {
	if c == nil {
		return parse(statement)
	}
	key := weak.Make(statement)
	if have, ok := c.documents.Get(key); ok {
		return have.document, have.err
	}
	var is parsed
	is.document, is.err = parse(statement)
	c.documents.Put(key, is, cacheTTL)
	return is.document, is.err
}

func parse(statement *attest.Statement) (*sbom.Document, error) {
	value, err := document.Decode(statement.Predicate)
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return sbom.Parse(value)
}

// ErrNone means that no bill of materials was verified.
var ErrNone = errors.New("no bill of materials is verified")

// Inventory is the packages of the bills of materials that count.
type Inventory struct {
	Packages []*sbom.Package
	// Bills are the facts of the documents.
	Bills []verify.Fact
}

// Read reads the latest document of each signer, by the verified time of signing; lists are by trusted signer. Of
// one signer's without a verified time all count. An older one than the bound does not count; ErrNone,
// age.ErrUnknown or a *verify.Rejection tell why none does.
func (c *Cache) Read(lists [][]verify.Fact, bounds age.Bounds) (Inventory, error) {
	bills, err := bounds.Current(lists)
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		return Inventory{}, rejection
	}
	if err != nil {
		return Inventory{}, fmt.Errorf("bill of materials: %w", err)
	}
	if len(bills) == 0 {
		return Inventory{}, ErrNone
	}
	all := Inventory{Bills: bills}
	for _, fact := range bills {
		bill, err := c.Parse(fact.Statement)
		if err != nil {
			return Inventory{}, fmt.Errorf("signed by %s: %w", fact.Signer, err)
		}
		for i := range bill.Packages {
			all.Packages = append(all.Packages, &bill.Packages[i])
		}
		if err := document.Within("the packages of the bills of materials", len(all.Packages)); err != nil {
			return Inventory{}, err
		}
	}
	return all, nil
}

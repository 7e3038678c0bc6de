package claims

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Key identifies the verified claims about a digest. They are valid for all credentials, but not
// where a policy names other sources of evidence: an image that was signed for one environment is
// not signed for another. Signatures are valid in every repository of the image. Statements are
// valid in one: a copy of the image elsewhere may lack the latest. Everything that claims depend on
// is part of the key, so a changed policy, key or root never hits an older entry.
type Key struct {
	Digest image.Digest
	// Authority is the hash of the authority with its key bytes; Generation is that of the
	// trust content.
	Authority, Generation string
	Role                  attest.Role
	Predicate             string
	// Artifact: the evidence is a document of its own, and not a statement.
	Artifact bool
	// Sources are the locations of evidence that a policy names; "" for none.
	Sources string
	// Of is the repository that statements were searched in; "" for signatures, and where
	// Sources name each repository.
	Of string
}

// Location identifies where something is searched, with some credentials.
type Location struct {
	Repository     image.Repository
	Sources, Scope string
}

// Query is a request for verified claims.
type Query struct {
	Key
	// Repository and Scope, the name of the credentials, are where "none found" is valid.
	Repository image.Repository
	Scope      string
	// MaxAge is that of the authority: negative for claims that are not cached, zero for the
	// default.
	MaxAge time.Duration
	// Fallback: claims from an earlier repository may be cached under the key, and those of
	// this location are added to them.
	Fallback bool
	// Incomplete: an earlier repository could not be read to the end, so that statements of this
	// location are cached as briefly as "none found": a later one may be there.
	Incomplete bool
	// Partial: an earlier repository returned a part of its statements, which are not cached. Those
	// of this location are not cached either: without the others they could meet more.
	Partial bool
	// Bypass: no cached claim answers the query.
	Bypass bool
}

// Location returns where the query's claims are searched.
func (q Query) Location() Location {
	return Location{Repository: q.Repository, Sources: q.Sources, Scope: q.Scope}
}

// noneKey identifies a cached "none found", which is valid only for one evidence
// repository and one set of credentials.
type noneKey struct {
	Key
	repository image.Repository
	scope      string
}

func (q Query) none() noneKey { return noneKey{Key: q.Key, repository: q.Repository, scope: q.Scope} }

// String identifies a search that concurrent requests share.
func (k noneKey) String() string {
	return fmt.Sprintf("%s %q %q %q %q %t %q %q %q %q",
		k.Digest, k.Authority, k.Generation, k.Role, k.Predicate, k.Artifact, k.repository, k.Sources, k.Of, k.scope)
}

// maxKey bounds a key in bytes: two hashes, a digest, a predicate type, repositories.
const maxKey = 4 << 10

// formatVersion changes with the meaning of a key or an entry, and whenever verification becomes
// stricter: claims that older rules accepted are verified again, whether a replica, the
// shared store or a snapshot holds them.
const formatVersion = "9"

// String returns the key as other replicas are asked for it: a JSON array of its parts.
func (k Key) String() string {
	kind := "statement"
	if k.Artifact {
		kind = "artifact"
	}
	parts := []string{formatVersion, k.Digest.String(), k.Authority, k.Generation, string(k.Role), k.Predicate, kind, k.Sources, k.Of}
	encoded, err := json.Marshal(parts)
	if err != nil { // a part that is not UTF-8: not shared
		return ""
	}
	return string(encoded)
}

// ParseKey parses the output of String, and nothing else.
func ParseKey(text string) (Key, error) {
	if len(text) > maxKey {
		return Key{}, errors.New("the key is too long")
	}
	var parts []string
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return Key{}, fmt.Errorf("key of a fact: %w", err)
	}
	if len(parts) != 9 || parts[0] != formatVersion {
		return Key{}, errors.New("the key is of another version")
	}
	digest, err := image.ParseDigest(parts[1])
	if err != nil {
		return Key{}, fmt.Errorf("key of a fact: %w", err)
	}
	key := Key{
		Digest: digest, Authority: parts[2], Generation: parts[3],
		Role: attest.Role(parts[4]), Predicate: parts[5], Artifact: parts[6] == "artifact", Sources: parts[7], Of: parts[8],
	}
	if key.String() != text {
		return Key{}, errors.New("the key is not in its canonical form")
	}
	return key, nil
}

// confirm checks that a fact matches the key, and has not expired.
func (k Key) confirm(fact verify.Fact, now time.Time) error {
	switch {
	case fact.Subject != k.Digest:
		return errors.New("the fact is about another digest")
	case fact.Role != k.Role:
		return errors.New("the fact is of another role")
	case !fact.Expires.IsZero() && !now.Before(fact.Expires):
		return errors.New("the fact has expired")
	case k.Role == attest.Signature:
		return nil
	case fact.Statement == nil || fact.Statement.PredicateType != k.Predicate:
		return errors.New("the statement is of another type")
	}
	return nil
}

// Apart returns a name that separates a caller from the shared requests of others, from
// the registry's method Apart if it has one; "" shares.
func Apart(registry any, repository image.Repository) string {
	if tenant, ok := registry.(interface{ Apart(image.Repository) string }); ok {
		if name := tenant.Apart(repository); name != "" {
			return "\x00" + name
		}
	}
	return ""
}

package set

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/verify"
)

// overrides are those of a set, indexed by the properties that they match.
type overrides struct {
	all          []*policy.Override // sorted by name
	hash         string
	digests      map[image.Digest][]*policy.Override
	repositories map[string][]*policy.Override // by name; patterns are not there
	// inNamespace are those for namespaces that are named in full, elsewhere all others.
	inNamespace map[string][]*policy.Override
	elsewhere   []*policy.Override
}

// WithOverrides returns a set of the same policies and exceptions with these overrides. Two with
// one name are an error, and so is an incomplete one.
func (s *Set) WithOverrides(list ...*policy.Override) (*Set, error) {
	with := *s
	with.overrides = nil
	if len(list) > 0 {
		made, err := newOverrides(list)
		if err != nil {
			return nil, err
		}
		with.overrides = made
	}
	with.hash = with.overrides.join(with.rulesHash)
	return &with, nil
}

// Overrides returns the overrides, sorted by name. The slice is not to be changed.
func (s *Set) Overrides() []*policy.Override {
	if s.overrides == nil {
		return nil
	}
	return s.overrides.all
}

func newOverrides(list []*policy.Override) (*overrides, error) {
	x := &overrides{
		all: slices.Clone(list), digests: map[image.Digest][]*policy.Override{}, repositories: map[string][]*policy.Override{},
		inNamespace: map[string][]*policy.Override{},
	}
	slices.SortStableFunc(x.all, func(a, b *policy.Override) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	var errs []error
	for i, o := range x.all {
		errs = append(errs, o.Validate())
		if i > 0 && o.Name == x.all[i-1].Name {
			errs = append(errs, fmt.Errorf("override %s is defined twice: in %s and in %s", o.Name, x.all[i-1].Source, o.Source))
		}
		fmt.Fprintf(h, "%s=%s\n", o.ID(), o.Hash)
		x.file(o)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	x.hash = hex.EncodeToString(h.Sum(nil))
	return x, nil
}

func (x *overrides) file(o *policy.Override) {
	for _, digest := range o.Digests {
		x.digests[digest] = append(x.digests[digest], o)
	}
	for _, name := range o.Repositories {
		if !wildcard.Contains(name) {
			x.repositories[name] = append(x.repositories[name], o)
		}
	}
	if len(o.Namespaces) == 0 || slices.ContainsFunc(o.Namespaces, wildcard.Contains) {
		x.elsewhere = append(x.elsewhere, o)
		return
	}
	for _, namespace := range o.Namespaces {
		x.inNamespace[namespace] = append(x.inNamespace[namespace], o)
	}
}

// join adds the overrides to the hash of a set without them.
func (x *overrides) join(hash string) string {
	if x == nil {
		return hash
	}
	sum := sha256.Sum256([]byte(hash + "\noverride " + x.hash))
	return hex.EncodeToString(sum[:])
}

// Overriding is the overrides of a set that are active for one subject. A nil one matches
// nothing.
type Overriding struct {
	set     *overrides
	subject *policy.Subject
	// Those in force that do not go by names written in full.
	patterns, digesting, signing []*policy.Override
}

// Overriding returns the overrides in force for a subject, nil where there are none.
func (s *Set) Overriding(subject *policy.Subject) *Overriding {
	if s.overrides == nil {
		return nil
	}
	o := &Overriding{set: s.overrides, subject: subject}
	found := false
	for _, list := range s.overrides.near(subject) {
		for _, one := range list {
			if matchOf(one, subject) == unmatched {
				continue
			}
			found = true
			if len(one.Digests) > 0 {
				o.digesting = append(o.digesting, one)
			}
			if len(one.Signers) > 0 {
				o.signing = append(o.signing, one)
			}
			if slices.ContainsFunc(one.Repositories, wildcard.Contains) {
				o.patterns = append(o.patterns, one)
			}
		}
	}
	if !found {
		return nil
	}
	return o
}

// MayDeny reports whether an active override may deny a subject's images, for callers that cannot
// verify these images.
func (s *Set) MayDeny(subject *policy.Subject) bool {
	if s.overrides == nil {
		return false
	}
	denies := func(one *policy.Override) bool {
		return one.Effect == policy.OverrideDeny && matchOf(one, subject) != unmatched
	}
	return slices.ContainsFunc(s.overrides.near(subject), func(list []*policy.Override) bool { return slices.ContainsFunc(list, denies) })
}

// near returns the overrides that may match a subject.
func (x *overrides) near(subject *policy.Subject) [][]*policy.Override {
	if subject.Bare && subject.Namespace == "" { // it may be in any
		return [][]*policy.Override{x.all}
	}
	return [][]*policy.Override{x.inNamespace[subject.Namespace], x.elsewhere}
}

// WantsDigest reports whether an override of that effect goes by digests.
func (o *Overriding) WantsDigest(effect policy.OverrideEffect) bool {
	return hasEffect(o.digesting, effect)
}

// WantsSigner reports whether an override of that effect goes by signers.
func (o *Overriding) WantsSigner(effect policy.OverrideEffect) bool {
	return hasEffect(o.signing, effect)
}

func hasEffect(list []*policy.Override, effect policy.OverrideEffect) bool {
	return slices.ContainsFunc(list, func(one *policy.Override) bool { return one.Effect == effect })
}

// Authorities returns the authorities that an Allow accepts.
func (o *Overriding) Authorities() []*verify.Authority {
	var list []*verify.Authority
	for _, one := range o.signing {
		if one.Effect != policy.OverrideAllow {
			continue
		}
		for i := range one.Signers {
			list = append(list, one.Signers[i].Authority)
		}
	}
	return list
}

// MayBeDenied reports whether a verification against the authority may find a denied signer.
func (o *Overriding) MayBeDenied(authority *verify.Authority) bool {
	return slices.ContainsFunc(o.signing, func(one *policy.Override) bool {
		return one.Effect == policy.OverrideDeny && slices.ContainsFunc(one.Signers, func(s policy.OverrideSigner) bool { return s.MayBe(authority) })
	})
}

// Overridden is the known data of an image that overrides may match.
type Overridden struct {
	// Names are all names that the image is judged by.
	Names []image.Ref
	// Digests are the image's digests: the one in its reference or the resolved one and, for a
	// Deny, the members of its index.
	Digests []image.Digest
	// Facts are the verified claims.
	Facts []verify.Fact
}

// Says returns the override of an effect that matches the image, nil if none does. Of several, a
// certain match precedes a doubtful one, then a match by name precedes the others because it
// needs the least data, then the first by name applies.
func (o *Overriding) Says(effect policy.OverrideEffect, about Overridden) *policy.Overruling {
	var found *policy.Overruling
	offer := func(one *policy.Override, by string, byName bool) {
		is := matchOf(one, o.subject)
		if one.Effect != effect || is == unmatched {
			return
		}
		said := &policy.Overruling{Override: one, By: by, ByName: byName, Doubtful: is == uncertain}
		if found == nil || precedes(said, found) {
			found = said
		}
	}
	for _, digest := range about.Digests {
		for _, one := range o.set.digests[digest] {
			offer(one, "digest "+digest.String(), false)
		}
	}
	for _, fact := range about.Facts {
		for _, one := range o.signing {
			for i := range one.Signers {
				if one.Signers[i].Is(fact.Signer) {
					offer(one, "images signed by "+fact.Signer.String(), false)
				}
			}
		}
	}
	for _, name := range about.Names {
		for _, spelling := range repositorySpellings(name, effect) {
			for _, one := range o.set.repositories[spelling] {
				offer(one, "repository "+spelling, true)
			}
			for _, one := range o.patterns {
				for _, pattern := range one.Repositories {
					if wildcard.Contains(pattern) && wildcard.Match(pattern, spelling) {
						offer(one, "repositories "+pattern, true)
					}
				}
			}
		}
	}
	return found
}

// precedes orders the overrides that match one image.
func precedes(o, other *policy.Overruling) bool {
	if o.Doubtful != other.Doubtful {
		return other.Doubtful
	}
	if o.ByName != other.ByName {
		return o.ByName
	}
	return o.Override.Name < other.Override.Name
}

// repositorySpellings are the names of a repository: Docker Hub's official images exist with and
// without library/. A Deny holds under each name of its registry, too.
func repositorySpellings(ref image.Ref, effect policy.OverrideEffect) []string {
	name := ref.Repository().String()
	names := []string{name}
	if official, ok := strings.CutPrefix(name, "docker.io/library/"); ok {
		names = append(names, "docker.io/"+official)
	}
	if effect == policy.OverrideDeny {
		names = append(names, ref.Repository().OtherSpellings()...)
	}
	return names
}

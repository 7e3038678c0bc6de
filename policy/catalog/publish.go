package catalog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// publish swaps the snapshot. Of documents that say the same policy, the one with
// the first key is active, and the others are entries that say so. A Deny holds all the
// same.
func (c *Catalog) publish() *Snapshot {
	next := &Snapshot{}
	var policies []*policy.Policy
	var exceptions []*policy.Exception
	var overrides []*policy.Override
	first := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		entry := c.entries[key].Entry
		id := entry.id()
		if earlier, taken := first[id]; taken {
			entry = entry.twice(id, earlier, key)
		} else if id != "" {
			first[id] = entry.Source
		}
		next.Entries = append(next.Entries, entry)
		if entry.Policy != nil {
			policies = append(policies, c.effective(key, entry.Policy))
		}
		if entry.Exception != nil {
			exceptions = append(exceptions, entry.Exception)
		}
		if entry.Override != nil {
			overrides = append(overrides, entry.Override)
		}
	}
	c.root(next.Entries)
	set, err := c.join(policies, exceptions, overrides)
	if err != nil {
		// A policy without a name cannot come from an API server; the documents
		// that were active stay so, and the entries say why.
		next.Set = c.snapshot.Load().Set
		next.Entries = append(next.Entries, Entry{}.broken(err))
	} else {
		next.Set = set
	}
	c.snapshot.Store(next)
	return next
}

func (c *Catalog) effective(key string, p *policy.Policy) *policy.Policy {
	if c.options.Effective == nil {
		return p
	}
	return c.options.Effective(key, c.entries[key].text, p)
}

func (c *Catalog) join(policies []*policy.Policy, exceptions []*policy.Exception, overrides []*policy.Override) (*set.Set, error) {
	if c.options.Beside != nil {
		more, err := c.options.Beside(policies)
		if err != nil {
			return nil, err
		}
		policies = append(policies, more...)
	}
	return set.Join(policies, exceptions, overrides)
}

// root publishes the current TrustRoots.
func (c *Catalog) root(entries []Entry) {
	if c.options.TrustRoots == nil {
		return
	}
	named := map[string]bool{}
	for _, entry := range entries {
		switch {
		case entry.root == "":
			continue
		case entry.Root != nil:
			c.options.TrustRoots.Put(entry.Root)
		default:
			c.options.TrustRoots.Break(entry.root, entry.Err)
		}
		named[entry.root] = true
	}
	for name := range c.roots {
		if !named[name] {
			c.options.TrustRoots.Remove(name)
		}
	}
	c.roots = named
}

// twice is the entry of a document that defines the same object as an earlier one. The
// earlier one may have expired: so a Deny is enforced, as that of any broken document,
// under a name that no object has.
func (e Entry) twice(id, earlier, key string) Entry {
	deny := e.Override
	e.Policy, e.Exception, e.Override, e.Root, e.root = nil, nil, nil, nil, ""
	is := "is not"
	if deny != nil && deny.Effect == policy.OverrideDeny {
		renamed := *deny
		renamed.Name += " (" + key + ")"
		e.Override, is = &renamed, "denies all the same"
	}
	return e.broken(fmt.Errorf("%s is defined twice: in %s, which is active, and in %s, which %s", id, earlier, e.Source, is))
}

// id is the identity of a document's object; empty if it defines none.
func (e Entry) id() string {
	switch {
	case e.Policy != nil:
		return e.Policy.ID()
	case e.Exception != nil:
		return "PolicyException." + e.Exception.Group + "/" + e.Exception.ID()
	case e.Override != nil:
		return e.Override.ID()
	case e.root != "":
		return "TrustRoot/" + e.root
	}
	return ""
}

package rollout

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/rollout"
)

// The values of AuditedBy for policies.
const (
	BySetting = "the setting policies.audit"
	ByRollout = "rollout: pending impact analysis"
)

// The values of policies.audit for sources that are no folder.
const (
	auditCluster = "cluster"
	auditFolders = "folders"
)

// audits reports whether a document's source is one of those that only audit, by its key in the
// catalog.
func audits(sources []string, key string) bool {
	for _, source := range sources {
		switch source {
		case auditCluster:
			if strings.HasPrefix(key, kinds.FromCluster+"/") {
				return true
			}
		case auditFolders:
			if !strings.HasPrefix(key, kinds.FromCluster+"/") {
				return true
			}
		default:
			if path, ok := strings.CutPrefix(key, catalog.FolderPrefix); ok && isWithin(path, filepath.Clean(source)) {
				return true
			}
		}
	}
	return false
}

// isWithin reports whether a document of a folder is in a file or below a folder.
func isWithin(path, source string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(path), source)
	return ok && (strings.HasPrefix(rest, "#") || strings.HasPrefix(rest, "/"))
}

// Effective determines the effective version of a policy, after the settings of its source and the
// guard. It is safe for concurrent use.
type Effective struct {
	sources []string // with policies that only audit
	// approvals is nil where every version is in force: without the guard, and until they are loaded.
	approvals atomic.Pointer[rollout.Approvals]
	compile   func(catalog.Document) catalog.Entry
	// beside makes the policies that follow from others.
	beside func([]*policy.Policy) ([]*policy.Policy, error)
	log    *slog.Logger

	mu         sync.Mutex
	versions   map[*policy.Policy]rollout.Version
	previousOf map[string]*policy.Policy // compiled, by the hash of the approved version
	effects    map[string]rollout.Effect // of policies that are not in force themselves, by ID
}

// maxVersions bounds the cached versions, which may be of deleted policies.
const maxVersions = 10_000

// NewEffective makes an Effective without approvals. sources are those of policies that only audit:
// cluster, folders, or the path of a folder.
func NewEffective(sources []string, log *slog.Logger) *Effective {
	f := &Effective{sources: sources, log: log}
	f.Reset()
	if len(sources) > 0 {
		log.Warn("policies of these sources audit only, regardless of their actions: they deny nothing (policies.audit)", slog.String("sources", strings.Join(sources, ", ")))
	}
	return f
}

// Reset empties the caches, because the inputs of compilation have changed.
func (f *Effective) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions, f.previousOf, f.effects = map[*policy.Policy]rollout.Version{}, map[string]*policy.Policy{}, map[string]rollout.Effect{}
}

// Of is catalog.Options.Effective.
func (f *Effective) Of(key string, text []byte, p *policy.Policy) *policy.Policy {
	if audits(f.sources, key) {
		return policy.Audited(p, BySetting)
	}
	approvals := f.approvals.Load()
	if approvals == nil {
		return p
	}
	v, err := f.version(p, text)
	if err != nil {
		return p // it is broken, and denies the named images
	}
	standing := approvals.Of(v, time.Now())
	made := p
	switch standing {
	case rollout.Itself:
	case rollout.Audited:
		made = policy.Audited(p, ByRollout)
	case rollout.Previous:
		made = f.previous(key, p, approvals)
		if made == nil {
			made, standing = p, rollout.Itself
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.effects, p.ID())
	if standing != rollout.Itself {
		f.effects[p.ID()] = standing
	}
	return made
}

// previous is the previously approved version, compiled; nil if that is no longer possible.
func (f *Effective) previous(key string, p *policy.Policy, approvals *rollout.Approvals) *policy.Policy {
	before, _ := approvals.Before(p.ID())
	f.mu.Lock()
	made, known := f.previousOf[before.Hash]
	f.mu.Unlock()
	if known {
		return made
	}
	entry := f.compile(catalog.Document{Key: key, Text: before.Text, Source: p.Source + " (as it was approved)"})
	if entry.Policy == nil || entry.Policy.ID() != p.ID() {
		f.log.Error("the approved version of a policy is no longer usable: its new version is active without a rollout check", slog.String("policy", p.ID()), slog.String("error", entry.Why))
	} else {
		made = entry.Policy
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.previousOf) >= maxVersions {
		clear(f.previousOf)
	}
	f.previousOf[before.Hash] = made
	return made
}

// Compiler sets the compiler of approved versions: that of the catalog.
func (f *Effective) Compiler(compile func(catalog.Document) catalog.Entry) { f.compile = compile }

// version parses a policy's version, once.
func (f *Effective) version(p *policy.Policy, text []byte) (rollout.Version, error) {
	f.mu.Lock()
	v, known := f.versions[p]
	f.mu.Unlock()
	if known {
		return v, nil
	}
	v, err := rollout.Read(p, text)
	if err != nil {
		return v, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.versions) >= maxVersions {
		clear(f.versions)
	}
	f.versions[p] = v
	return v, nil
}

// Count returns the number of policies that only audit because of their source, and of held ones.
func (f *Effective) Count(entries []catalog.Entry) (source, guard int) {
	for _, entry := range entries {
		switch {
		case f == nil || entry.Policy == nil:
		case audits(f.sources, entry.Key):
			source++
		case f.stands(entry.Policy.ID()) != rollout.Itself:
			guard++
		}
	}
	return source, guard
}

// stands returns the effective version of a policy.
func (f *Effective) stands(id string) rollout.Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	if standing, is := f.effects[id]; is {
		return standing
	}
	return rollout.Itself
}

// Why describes why an entry is not in force as written; empty if it is.
func (f *Effective) Why(entry catalog.Entry) string {
	switch {
	case f == nil || entry.Policy == nil:
		return ""
	case audits(f.sources, entry.Key):
		return "it only audits: " + BySetting + " names its source"
	}
	switch f.stands(entry.Policy.ID()) {
	case rollout.Previous:
		return "rollout: pending impact analysis; the previous version remains active"
	case rollout.Audited:
		return "rollout: pending impact analysis; it only audits until then"
	case rollout.Itself:
	}
	return ""
}

// Merged makes the policies that follow from others audit where these do: all from one source,
// or held. Where it denies, a policy that only audits because of the guard does not exempt any
// image.
func (f *Effective) Merged(beside func([]*policy.Policy) ([]*policy.Policy, error), chosen bool) func([]*policy.Policy) ([]*policy.Policy, error) {
	f.beside = beside
	return func(active []*policy.Policy) ([]*policy.Policy, error) {
		by := ""
		switch {
		case slices.ContainsFunc(active, func(p *policy.Policy) bool { return p.Kind == "ClusterImagePolicy" && p.AuditedBy == "" }):
		case audits(f.sources, kinds.FromCluster+"/"):
			by = BySetting
		case !chosen:
			by = ByRollout
		}
		if by == "" {
			active = slices.DeleteFunc(slices.Clone(active), func(p *policy.Policy) bool { return p.AuditedBy == ByRollout })
		}
		made, err := beside(active)
		if err != nil {
			return nil, err
		}
		for i := range made {
			made[i] = policy.Audited(made[i], by)
		}
		return made, nil
	}
}

// approvable returns the versions that the approvals may contain, with their policies, by ID, and
// all existing versions. Policies that audit because of their source are only in the latter; they
// are evaluated when that ends.
func (f *Effective) approvable(of *catalog.Catalog) (found map[string]candidate, there []rollout.Version, failed error) {
	found = map[string]candidate{}
	of.Texts(func(entry catalog.Entry, text []byte) {
		v, err := f.version(entry.Policy, text)
		if err != nil {
			failed = fmt.Errorf("%s: %w", entry.Source, err)
			return
		}
		there = append(there, v)
		if !audits(f.sources, entry.Key) {
			found[v.ID] = candidate{version: v, policy: entry.Policy, entry: entry}
		}
	})
	return found, there, failed
}

// candidate is a policy that is in force or held.
type candidate struct {
	version rollout.Version
	policy  *policy.Policy
	entry   catalog.Entry
}

package mirrors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// fileInterval is the time between two reads of files, and configMapInterval between two
	// look-ups of ConfigMaps, which are cached as long.
	fileInterval      = time.Second
	configMapInterval = cluster.DefaultConfigMapTTL
	// configMapRetry is the pause after a failed look-up at the start.
	configMapRetry = time.Second
)

// Changed implements document.Consumer.
func (m *Mirrors) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range upserts {
		next := entry{key: inCluster + "/" + d.Key.String(), source: "the cluster: " + d.Key.String(), text: d.Raw}
		if d.Key.Group == kinds.OwnGroup {
			next.object = documents.ObjectOf(d)
		}
		m.put(next)
	}
	for _, key := range deletes {
		delete(m.documents, inCluster+"/"+key.String())
	}
	m.published(inCluster)
}

// published publishes, and logs the error if that fails.
func (m *Mirrors) published(source string) {
	if err := m.publish(source); err != nil {
		m.log.Error("the mirrors cannot be used; those that were active stay so", slog.String("error", err.Error()))
	}
}

// files are files of mirrors that are followed.
type files struct {
	paths []string
	read  func(paths []string) ([]workload.Object, error)
	into  *Mirrors
	last  string          // the hash of their content
	keys  map[string]bool // of its documents
}

// FollowFiles returns the component that follows files and folders of mirrors, and loads them once.
func (m *Mirrors) FollowFiles(paths []string, read func(paths []string) ([]workload.Object, error)) (gateway.Component, error) {
	m.await(inFiles)
	followed := &files{paths: paths, read: read, into: m}
	if err := followed.load(); err != nil {
		return nil, err
	}
	return gateway.Loop(followed.follow), nil
}

// FollowConfigMaps returns the component that follows ConfigMaps by their names, as namespace/name.
func (m *Mirrors) FollowConfigMaps(names []string, lookup kyverno.Lookup) gateway.Component {
	m.await(inConfigMaps)
	return gateway.Loop((&followed{names: names, lookup: lookup, into: m}).follow)
}

// AwaitCluster delays publishing until the documents of the cluster are listed.
func (m *Mirrors) AwaitCluster() { m.await(inCluster) }

// load reads the files and, if they changed, replaces their documents. Unreadable files change
// nothing.
func (f *files) load() error {
	objects, err := f.read(f.paths)
	if err != nil {
		return fmt.Errorf("mirrors.files: %w", err)
	}
	h := sha256.New()
	var documents []entry
	keys, twins := map[string]bool{}, map[string]int{}
	var broken error
	for _, object := range objects {
		text, err := json.Marshal(object.Content())
		if err != nil {
			return fmt.Errorf("mirrors.files: %s: %w", object.Source(), err)
		}
		fmt.Fprintf(h, "%q %d\n%s\n", object.Source(), len(text), text)
		// By name and not by location: an invalid version keeps its own last valid one, wherever
		// documents moved to.
		name := object.Kind() + "/" + object.Namespace() + "/" + object.Name()
		key := fmt.Sprintf("%s/%s#%06d", inFiles, name, twins[name])
		_, problem := Compile(text, object.Source())
		if errors.Is(problem, mirror.ErrNoMapping) && !f.keys[key] {
			continue // a ConfigMap with another purpose
		}
		if problem != nil && !f.keys[key] && broken == nil {
			broken = problem
		}
		documents = append(documents, entry{key: key, source: object.Source(), text: text})
		keys[key] = true
		twins[name]++
	}
	// An invalid document beside one that is gone may be that one, with its kind or name misspelt:
	// then the last valid version must stay.
	gone := func(key string) bool { return !keys[key] }
	if broken != nil && slices.ContainsFunc(slices.Collect(maps.Keys(f.keys)), gone) {
		return fmt.Errorf("mirrors.files: a document is gone, and another is invalid: %w", broken)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if sum == f.last {
		return nil
	}
	f.into.mu.Lock()
	defer f.into.mu.Unlock()
	f.into.replace(inFiles, documents)
	if err := f.into.publish(inFiles); err != nil {
		return err
	}
	f.last, f.keys = sum, keys
	return nil
}

// follow loads again until ctx ends, and logs each new error.
func (f *files) follow(ctx context.Context) {
	ticker := time.NewTicker(fileInterval)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := ""
		if err := f.load(); err != nil {
			now = err.Error()
		}
		if now != "" && now != said {
			f.into.log.Error("the mirrors in files cannot be read; those that were active stay so", slog.String("error", now))
		}
		said = now
	}
}

// followed are ConfigMaps of pairs, looked up by their names.
type followed struct {
	names    []string // namespace/name
	lookup   kyverno.Lookup
	into     *Mirrors
	reported bool
}

// follow looks them up until ctx ends. The first round waits for a response about each.
func (c *followed) follow(ctx context.Context) {
	for ctx.Err() == nil {
		pause := configMapInterval
		if !c.look(ctx) && !c.reported {
			pause = configMapRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// look reports whether there was a response about each.
func (c *followed) look(ctx context.Context) bool {
	type found struct {
		text []byte
		err  error
	}
	all := make(map[string]found, len(c.names))
	for _, name := range c.names {
		namespace, short, _ := strings.Cut(name, "/")
		var f found
		content, err := c.lookup.ConfigMap(ctx, namespace, short)
		f.err = err
		if err == nil {
			f.text, f.err = json.Marshal(content)
		}
		all[name] = f
	}
	if ctx.Err() != nil {
		return false
	}
	m, complete := c.into, true
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.stamp(inConfigMaps)
	for name, f := range all {
		key, source := inConfigMaps+"/"+name, "ConfigMap "+name
		switch {
		case f.err == nil:
			m.put(entry{key: key, source: source, text: f.text})
		case errors.Is(f.err, cluster.ErrNotFound):
			delete(m.documents, key)
			m.missing(name)
		case errors.Is(f.err, cluster.ErrUnavailable):
			complete = false
			m.log.Warn("a ConfigMap of mirrors could not be read; its previous content stays in use",
				slog.String("configMap", name), slog.String("error", f.err.Error()))
		default:
			m.fail(key, source, f.err)
		}
	}
	if (complete || c.reported) && (!c.reported || m.stamp(inConfigMaps) != before) {
		c.reported = true
		m.published(inConfigMaps)
	}
	return complete
}

// missing logs once that a ConfigMap does not exist. The caller holds the lock.
func (m *Mirrors) missing(name string) {
	key := inConfigMaps + "/" + name
	if !m.absent[key] {
		m.absent[key] = true
		m.log.Warn("a ConfigMap of mirrors is not there", slog.String("configMap", name))
	}
}

// stamp identifies the content of a source, to detect changes. The caller holds the lock.
func (m *Mirrors) stamp(source string) string {
	h := sha256.New()
	for _, key := range m.keys() {
		if d := m.documents[key]; strings.HasPrefix(key, source+"/") {
			delete(m.absent, key)
			fmt.Fprintf(h, "%q %q %v\n", key, d.text, d.err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

package mirrors

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// The sources of mirrors. Of two documents for the same images, the one of the source that sorts
// first has precedence: files are the operator's.
const (
	inFiles      = "files"
	inConfigMaps = "in-configmaps"
	inCluster    = "in-cluster"
)

// entry is a document of a mapping and its state.
type entry struct {
	key, source string
	text        []byte
	// good is the last valid version; nil if there was none since the start. It is used while the
	// newest is invalid. Without it, a copy would be checked under fewer names: an image that is
	// denied by its source's name would be admitted by its copy's.
	good *mirror.Document
	// err is why the newest version is invalid, and clash why it conflicts with another document.
	err, clash error
	object     documents.Object // zero unless it is a RegistryMirror of the cluster
}

// why returns the errors; nil if there are none.
func (d *entry) why() error { return errors.Join(d.err, d.clash) }

// state is the state for metrics and messages.
func (d *entry) state() metrics.MirrorState {
	switch {
	case d.why() == nil:
		return metrics.MirrorActive
	case d.good != nil && d.clash == nil:
		return metrics.MirrorOutdated
	}
	return metrics.MirrorBroken
}

// id names the document as in the record of a verdict. A document that conflicts with another of
// its name is named by its location.
func (d *entry) id() string {
	switch {
	case d.clash != nil:
	case d.good != nil:
		return d.good.Kind + "/" + d.good.Name
	case d.object.Name != "":
		return "RegistryMirror/" + d.object.Name
	}
	return d.source
}

// Metrics counts documents and targets.
type Metrics interface {
	SetMirrors(mirrors []metrics.Mirror)
	SetTargets(registries []string)
}

// Mirrors supplies the mappings to their users. Its sources report changes from goroutines of
// their own.
type Mirrors struct {
	state    *gate.Current
	metrics  Metrics
	log      *slog.Logger
	reporter reporter
	changed  *gateway.Signal

	mu        sync.Mutex
	sources   documents.Sources
	documents map[string]*entry
	current   *mirror.Set
	reported  documents.States
	advised   map[string]bool // reported findings
	absent    map[string]bool // ConfigMaps reported as missing
}

// New makes Mirrors without documents. changed is notified after each change of the set.
func New(state *gate.Current, to Metrics, log *slog.Logger, changed *gateway.Signal) *Mirrors {
	return &Mirrors{
		state: state, metrics: to, log: log, reporter: reporter{log: log, status: &gateway.Signal{}}, changed: changed,
		sources: documents.NewSources(), documents: map[string]*entry{}, reported: documents.States{}, advised: map[string]bool{}, absent: map[string]bool{},
	}
}

func (m *Mirrors) keys() []string { return slices.Sorted(maps.Keys(m.documents)) }

// Ready returns a channel that is closed after the first set.
func (m *Mirrors) Ready() <-chan struct{} { return m.sources.Ready() }

// await delays publishing until the source has all of its initial documents.
func (m *Mirrors) await(source string) { m.sources.Await(source) }

// put compiles a version of a document. The caller holds the lock.
func (m *Mirrors) put(next entry) {
	have := m.documents[next.key]
	if have != nil && have.source == next.source && have.object == next.object && have.err == nil && bytes.Equal(have.text, next.text) {
		return
	}
	made, err := Compile(next.text, next.source)
	next.err = err
	if err == nil {
		next.good = made
	} else if have != nil {
		next.good = have.good
	}
	m.documents[next.key] = &next
}

// fail records that a document cannot be read, and keeps its current version. The caller holds
// the lock.
func (m *Mirrors) fail(key, source string, err error) {
	next := entry{key: key, source: source, err: err}
	if have := m.documents[key]; have != nil {
		next.good, next.object = have.good, have.object
	}
	m.documents[key] = &next
}

// replace sets all documents of a source. The caller holds the lock.
func (m *Mirrors) replace(source string, documents []entry) {
	kept := map[string]bool{}
	for _, d := range documents {
		kept[d.key] = true
		m.put(d)
	}
	maps.DeleteFunc(m.documents, func(key string, _ *entry) bool {
		return strings.HasPrefix(key, source+"/") && !kept[key]
	})
}

// publish makes the documents the current set. The caller holds the lock.
func (m *Mirrors) publish(source string) error {
	if !m.sources.Arrived(source) {
		return nil // with half of the mirrors, copies would be checked under half of their names
	}
	set, err := m.join()
	if err != nil {
		return err
	}
	m.current = set
	m.state.ReplaceMirrors(set)
	m.metrics.SetTargets(set.Registries())
	m.report()
	m.sources.Used()
	m.changed.Notify()
	m.log.Info("mirrors", slog.Int("documents", len(m.documents)), slog.Int("used", len(set.Documents())), slog.String("hash", set.Hash()))
	return nil
}

// join makes a set of all valid documents. A document that conflicts with a previous one is left
// out.
func (m *Mirrors) join() (*mirror.Set, error) {
	var all []*mirror.Document
	for _, key := range m.keys() {
		d := m.documents[key]
		d.clash = nil
		if d.good != nil {
			all = append(all, d.good)
		}
	}
	if set, err := mirror.NewSet(all...); err == nil {
		return set, nil
	}
	all = nil
	set, err := mirror.NewSet()
	if err != nil {
		return nil, fmt.Errorf("mirrors: %w", err)
	}
	for _, key := range m.keys() {
		d := m.documents[key]
		if d.good == nil {
			continue
		}
		joined, err := mirror.NewSet(append(slices.Clone(all), d.good)...)
		if err != nil {
			d.clash = fmt.Errorf("%s: %w", d.source, err)
			continue
		}
		all, set = append(all, d.good), joined
	}
	return set, nil
}

// report reports the changed documents to metrics, the log and the cluster.
func (m *Mirrors) report() {
	list := make([]metrics.Mirror, 0, len(m.documents))
	for _, key := range m.keys() {
		d := m.documents[key]
		list = append(list, metrics.Mirror{ID: d.id(), State: d.state()})
		if m.reported.Changed(key, fmt.Sprint(d.state(), " ", d.object.UID, " ", d.why())) {
			m.reporter.write(d)
			m.reporter.announce(d)
		}
	}
	m.reported.Keep(func(key string) bool { return m.documents[key] != nil })
	m.metrics.SetMirrors(list)
	m.reporter.status.Notify()
	advised := map[string]bool{}
	for _, finding := range m.current.Check() {
		text := finding.Where + ": " + finding.Message
		advised[text] = true
		if !m.advised[text] {
			m.log.Warn("mirror configuration has no effect", slog.String("where", finding.Where),
				slog.String("message", finding.Message), slog.String("hint", finding.Hint))
		}
	}
	m.advised = advised
}

// ReportAll reports the state of each document to the cluster: a new leader does not have its
// predecessor's reports.
func (m *Mirrors) ReportAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.keys() {
		m.reporter.announce(m.documents[key])
	}
}

// Set is the current one; nil until it is loaded.
func (m *Mirrors) Set() *mirror.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// Compile compiles a document. A document that makes the compiler panic is broken, and does
// not end the process.
func Compile(text []byte, source string) (*mirror.Document, error) {
	return documents.Compile(func() (*mirror.Document, error) { return mirror.Parse(text, source) })
}

// Written is a document as written.
type Written struct {
	Key, Source string
	Text        []byte
}

// Fill publishes documents as those of a cluster.
func (m *Mirrors) Fill(documents []Written) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range documents {
		m.put(entry{key: d.Key, source: d.Source, text: d.Text})
	}
	return m.publish(inCluster)
}

// Documents are those of all sources, as written.
func (m *Mirrors) Documents() []Written {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Written
	for _, key := range m.keys() {
		d := m.documents[key]
		list = append(list, Written{Key: key, Source: d.source, Text: d.text})
	}
	return list
}

// Faults lists the errors of the documents.
func (m *Mirrors) Faults() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var faults []string
	for _, key := range m.keys() {
		if d := m.documents[key]; d.why() != nil {
			faults = append(faults, fmt.Sprintf("the mirror %s cannot be used: %v", d.id(), d.why()))
		}
	}
	return faults
}

// Publish publishes the documents, if no source is awaited.
func (m *Mirrors) Publish() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publish("")
}

// ReportTo has broken mirrors reported by events, while leads returns true; events may be nil.
func (m *Mirrors) ReportTo(events Events, leads func() bool) {
	m.reporter.events, m.reporter.leads = events, leads
}

// StatusChanged is notified when the content of a status has changed.
func (m *Mirrors) StatusChanged() *gateway.Signal { return m.reporter.status }

// Events writes events soon and never waits.
type Events interface {
	Record(event record.Event)
}

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// ReaderOptions are the dependencies of a Reader.
type ReaderOptions struct {
	// Version is the program's version; required.
	Version string
	// Material replaces the cluster of the configuration; nil means to read that cluster.
	Material *Material
	// Offline: no connection is opened for a policy.
	Offline bool
	// Now is the clock of policies; nil means time.Now.
	Now func() time.Time
}

// Reader is a gateway without endpoints: it reads the inputs of a gateway of the same
// configuration, compiles them in the same way, and writes nothing. Close it when done.
type Reader struct {
	options   ReaderOptions
	g         *assembly
	compilers engine.Compilers
	log       *lines
	stop      context.CancelFunc
	wait      func() // returns when the components have ended; nil before they started

	mu        sync.Mutex
	documents map[document.Key][]byte // of the cluster, as written
}

// NewReader reads everything, until it is complete or ctx ends. It uses only the settings for
// policies and their look-ups; it ignores the others.
func NewReader(ctx context.Context, c config.Configuration, o ReaderOptions) (*Reader, error) {
	if o.Version == "" {
		return nil, errors.New("the reader of a gateway wants a version")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Reader{options: o, log: &lines{}, documents: map[document.Key][]byte{}}
	c.Standalone, c.Events.Disabled, c.Peers.Disabled = o.Material != nil, true, true
	c.Log, c.Roles, c.Guard = config.Log{Level: "warn", Format: "text"}, nil, ""
	log, err := newLogger(c.Log, r.log)
	if err != nil {
		return nil, err
	}
	r.g = &assembly{
		configuration: c, log: log, state: &gate.Current{}, open: make(chan struct{}), reader: r,
		options: Options{Log: r.log, Version: o.Version, Replica: "reader"}, metrics: metrics.New(metrics.Build{Version: o.Version}),
	}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	for _, step := range []func(context.Context) error{r.g.reach, r.prepare, r.g.read, r.fill, r.follow(beside), r.await} {
		if err := step(ctx); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Close ends the background tasks.
func (r *Reader) Close() {
	r.stop()
	if r.wait != nil {
		r.wait()
	}
	r.g.close()
}

// prepare makes the material available to look-ups.
func (r *Reader) prepare(context.Context) error {
	if r.options.Material == nil {
		return nil
	}
	r.g.around.files.current.Store(engine.NewResources().Advising("the bundle does not have it: make it again with --resource FILE"))
	return r.options.Material.lookUps(r.g.around.files)
}

// adjust changes the look-ups of policies before they are compiled.
func (r *Reader) adjust(options *engine.CompilerOptions) error {
	options.Now, options.Offline = r.options.Now, r.options.Offline
	if r.options.Offline {
		options.HTTP = nil
		options.Caller = nil
	}
	if r.options.Material == nil {
		return nil
	}
	return r.options.Material.adjust(options)
}

// fill publishes the material as a cluster's documents.
func (r *Reader) fill(context.Context) error {
	if r.options.Material == nil {
		return nil
	}
	return r.options.Material.fill(r.g)
}

// follow runs the components that read the cluster.
func (r *Reader) follow(beside context.Context) func(context.Context) error {
	return func(context.Context) error {
		r.wait = r.g.group.Start(beside)
		return nil
	}
}

// await returns when all inputs of a verdict are loaded.
func (r *Reader) await(ctx context.Context) error {
	for _, n := range r.g.group.Requirements() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w%s", n.Why, context.Cause(ctx), r.log.last())
		case <-n.Met:
		}
	}
	if r.g.globals == nil {
		return nil
	}
	// An unreadable entry does not extend the wait beyond that for others.
	waiting, cancel := context.WithTimeout(ctx, globalWait)
	defer cancel()
	ticker := time.NewTicker(globalLook)
	defer ticker.Stop()
	for r.g.globals.Unread() {
		select {
		case <-waiting.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

const (
	// globalWait bounds the wait for entries of the global context; globalLook is the time
	// between two checks.
	globalWait = 5 * time.Second
	globalLook = 20 * time.Millisecond
)

// Policies are the active ones, with exceptions and overrides.
func (r *Reader) Policies() *set.Set { return r.g.policies.catalog.Snapshot().Set }

// Entries are the documents and what became of them.
func (r *Reader) Entries() []catalog.Entry { return r.g.policies.catalog.Snapshot().Entries }

// Compilers are the compilers of the policies; their TrustRoots and Attestors wait until the TUF
// repositories are read.
func (r *Reader) Compilers() engine.Compilers { return r.compilers }

// Images reads the images of rules' contexts, once registries are set.
func (r *Reader) Images() *engine.RuleImages { return &r.g.images }

// Mirrors are the active mappings; nil for none.
func (r *Reader) Mirrors() *mirror.Set { return r.g.mirrors.Set() }

// Faults lists the errors of the mirrors.
func (r *Reader) Faults() []string {
	return r.g.mirrors.Faults()
}

// Keys reads the Secrets with keys.
func (r *Reader) Keys() trust.Secrets { return r.g.around.keys }

// PullSecrets reports which pull secrets exist.
func (r *Reader) PullSecrets() gate.PullSecrets { return r.g.around.pulls }

// ConfigMaps reads them for policies.
func (r *Reader) ConfigMaps() kyverno.Lookup { return r.g.around.configMaps }

// Secrets reads whole Secrets.
func (r *Reader) Secrets() keychain.Secrets { return r.g.around.secrets }

// Describe adds context to a request: the labels of its namespace, and the roles of its user.
// Unavailable values stay unset.
func (r *Reader) Describe(ctx context.Context, request *gate.Request) {
	s := &request.Subject
	namespace := s.Namespace
	if namespace == "" {
		namespace = request.Object.Namespace()
	}
	if !s.NamespaceKnown && namespace != "" {
		if found, err := r.g.around.namespaces.Labels(ctx, namespace); err == nil {
			s.NamespaceKnown, s.NamespaceLabels = true, found
		}
	}
	if s.User.Name == "" || s.User.RolesKnown || r.g.around.roles == nil {
		return
	}
	if roles, clusterRoles, err := r.g.around.roles.Roles(ctx, s.User, namespace); err == nil {
		s.User.Roles, s.User.ClusterRoles, s.User.RolesKnown = roles, clusterRoles, true
	}
}

// Excludes reports whether the webhooks exclude objects of a namespace.
func (r *Reader) Excludes(namespace string) bool {
	c := r.g.configuration
	return namespace == c.Namespace || slices.Contains(*c.Webhooks.ExcludedNamespaces, namespace)
}

// recording is a document.Consumer that keeps documents as written, for export.
type recording struct {
	document.Consumer
	reader *Reader
}

// Changed implements document.Consumer.
func (c recording) Changed(ctx context.Context, upserts []document.Document, deletes []document.Key) {
	c.reader.mu.Lock()
	for _, d := range upserts {
		c.reader.documents[d.Key] = d.Raw
	}
	for _, key := range deletes {
		delete(c.reader.documents, key)
	}
	c.reader.mu.Unlock()
	c.Consumer.Changed(ctx, upserts, deletes)
}

// lines keeps the end of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// maxLines bounds the kept lines, in bytes.
const maxLines = 4 << 10

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len()+len(p) > maxLines {
		l.text.Reset()
	}
	return l.text.Write(p[:min(len(p), maxLines)])
}

// last returns the last log lines, as the end of an error.
func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := strings.TrimSpace(l.text.String()); text != "" {
		return ":\n" + text
	}
	return ""
}

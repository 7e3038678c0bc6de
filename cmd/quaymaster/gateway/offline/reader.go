package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway"
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

// Reader reads the inputs of a gateway of the same configuration, compiles them in the same way,
// and writes nothing. Close it when done.
type Reader struct {
	options       ReaderOptions
	configuration config.Configuration
	around        lookups.Lookups
	documents     *documents.Documents
	group         gateway.Group
	log           *lines
	stop          context.CancelFunc
	wait          func() // returns when the components have ended; nil before they started

	mu   sync.Mutex
	seen map[document.Key][]byte // documents of the cluster, as written
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
	c.Standalone, c.Events.Disabled, c.Peers.Disabled = o.Material != nil, true, true
	c.Log, c.Roles, c.Guard = config.Log{Level: "warn", Format: "text"}, nil, ""
	r := &Reader{options: o, configuration: c, log: &lines{}, seen: map[document.Key][]byte{}}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	err := r.load()
	if err == nil {
		r.wait = r.group.Start(background)
		err = r.await(ctx)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the background tasks.
func (r *Reader) Close() {
	r.stop()
	if r.wait != nil {
		r.wait()
	}
	r.group.Close()
}

// load reads the material and the folders, and adds the components that read the cluster.
func (r *Reader) load() (err error) {
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r.around, err = lookups.Connect(lookups.Options{
		Configuration: r.configuration, Version: r.options.Version, Replica: "reader", Group: &r.group, Log: log,
	})
	if err != nil {
		return err
	}
	material := r.options.Material
	if material != nil {
		if err := material.lookUps(r.around.Files); err != nil {
			return err
		}
	}
	r.documents, err = documents.Load(documents.Config{
		Configuration: r.configuration, Around: r.around, State: &gate.Current{}, Group: &r.group,
		Metrics: metrics.New(metrics.Build{Version: r.options.Version}), Log: log,
		Offline: &documents.Offline{
			Now: r.options.Now, Adjust: r.adjust,
			Consumer: func(next document.Consumer) document.Consumer { return recording{Consumer: next, reader: r} },
		},
	})
	if err != nil || material == nil {
		return err
	}
	return material.fill(r.documents)
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

// await returns when all inputs of a verdict are loaded.
func (r *Reader) await(ctx context.Context) error {
	for _, n := range r.group.Requirements() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w%s", n.Why, context.Cause(ctx), r.log.last())
		case <-n.Met:
		}
	}
	if r.documents.Globals == nil {
		return nil
	}
	// An unreadable entry does not extend the wait beyond that for others.
	waiting, cancel := context.WithTimeout(ctx, globalWait)
	defer cancel()
	ticker := time.NewTicker(globalLook)
	defer ticker.Stop()
	for r.documents.Globals.Unread() {
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
func (r *Reader) Policies() *set.Set { return r.documents.Policies.Catalog.Snapshot().Set }

// Entries are the documents and what became of them.
func (r *Reader) Entries() []catalog.Entry { return r.documents.Policies.Catalog.Snapshot().Entries }

// Compilers are the compilers of the policies; their TrustRoots and Attestors wait until the TUF
// repositories are read.
func (r *Reader) Compilers() engine.Compilers { return r.documents.Compilers }

// Images reads the images of rules' contexts, once registries are set.
func (r *Reader) Images() *engine.RuleImages { return &r.documents.Images }

// Mirrors are the active mappings; nil for none.
func (r *Reader) Mirrors() *mirror.Set { return r.documents.Mirrors.Set() }

// Faults lists the errors of the mirrors.
func (r *Reader) Faults() []string {
	return r.documents.Mirrors.Faults()
}

// Keys reads the Secrets with keys.
func (r *Reader) Keys() trust.Secrets { return r.around.Keys }

// PullSecrets reports which pull secrets exist.
func (r *Reader) PullSecrets() gate.PullSecrets { return r.around.Pulls }

// ConfigMaps reads them for policies.
func (r *Reader) ConfigMaps() kyverno.Lookup { return r.around.ConfigMaps }

// Secrets reads whole Secrets.
func (r *Reader) Secrets() keychain.Secrets { return r.around.Secrets }

// Describe adds context to a request: the labels of its namespace, and the roles of its user.
// Unavailable values stay unset.
func (r *Reader) Describe(ctx context.Context, request *gate.Request) {
	s := &request.Subject
	namespace := s.Namespace
	if namespace == "" {
		namespace = request.Object.Namespace()
	}
	if !s.NamespaceKnown && namespace != "" {
		if found, err := r.around.Namespaces.Labels(ctx, namespace); err == nil {
			s.NamespaceKnown, s.NamespaceLabels = true, found
		}
	}
	if s.User.Name == "" || s.User.RolesKnown || r.around.Roles == nil {
		return
	}
	if roles, clusterRoles, err := r.around.Roles.Roles(ctx, s.User, namespace); err == nil {
		s.User.Roles, s.User.ClusterRoles, s.User.RolesKnown = roles, clusterRoles, true
	}
}

// Configuration returns that of the Reader.
func (r *Reader) Configuration() config.Configuration { return r.configuration }

// Excludes reports whether the webhooks exclude objects of a namespace.
func (r *Reader) Excludes(namespace string) bool {
	c := r.configuration
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
		c.reader.seen[d.Key] = d.Raw
	}
	for _, key := range deletes {
		delete(c.reader.seen, key)
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

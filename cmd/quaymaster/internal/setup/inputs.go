package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

// Inputs is the input of verdicts: read from files, from a bundle or from a cluster.
type Inputs struct {
	Set     *set.Set
	Mirrors *mirror.Set // nil for none
	Images  *engine.RuleImages
	Store   *trust.Store
	Known   *engine.Resources // from files: namespaces, and credentials of policies
	pulls   gate.PullSecrets  // nil: unknown
	// Reader is set if policies are evaluated as at admission.
	Reader *offline.Reader
	// asksUser reports that a policy reads the requesting user.
	asksUser bool
	// flags are the policies that the flags define, which apply to every object; none without a signer.
	flags []*policy.Policy
	// Answers are the contents of the TUF repositories that policies name.
	Answers map[string][]byte
}

// Close stops reading of a cluster.
func (from *Inputs) Close() {
	if from.Reader != nil {
		from.Reader.Close()
	}
}

// describe completes a request as at admission.
func (from *Inputs) describe(ctx context.Context, request *gate.Request) {
	if from.Reader == nil || request.Object.IsDocument() {
		return
	}
	from.Reader.Place(request)
	carried.AsAdmitted(from.Reader.Configuration(), request)
	from.Reader.Describe(ctx, request)
}

// excludes reports whether the webhook configuration excludes a request.
func (from *Inputs) excludes(request *gate.Request) bool {
	if from.Reader == nil || request.Object.IsDocument() {
		return false
	}
	namespace := request.Subject.Namespace
	if namespace == "" && !request.ClusterScoped {
		namespace = request.Object.Namespace()
	}
	return from.Reader.Excludes(namespace)
}

// reading is how the inputs of one run are read.
type reading struct {
	*Flags
	t     command.Terminal
	clock func() time.Time
	own   *policy.Policy // of the flags; nil for none
	// required is the policy of the flags about every image; nil for none.
	required *policy.Policy
	verifies bool // required suffices without a policy or a signer
}

// Read reads the inputs that the flags name.
func (f *Flags) Read(ctx context.Context, t command.Terminal, authorities *authority.Flags, clock func() time.Time) (*Inputs, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	if f.Offline && slices.ContainsFunc(authorities.Keys, trust.IsLookup) {
		return nil, errors.New("--offline opens no connection, and --key names a key management service")
	}
	if err := f.readKeys(ctx, t, authorities); err != nil {
		return nil, err
	}
	own, err := authorities.Policy()
	if err != nil {
		return nil, err
	}
	required, err := authorities.Requirements()
	if err != nil {
		return nil, err
	}
	r := reading{Flags: f, t: t, clock: clock, own: own, required: required, verifies: authorities.Verifies()}
	var from *Inputs
	switch {
	case f.Bundle.File != "":
		from, err = r.fromBundle(ctx)
	case f.Cluster.Use:
		from, err = r.fromCluster(ctx)
	default:
		from, err = r.fromFiles(ctx)
	}
	if err != nil {
		return nil, err
	}
	if own != nil {
		from.flags = given(own, required)
	}
	if more := given(own, required); len(more) > 0 && from.Reader != nil {
		from.Set, err = set.Join(slices.Concat(from.Set.Policies(), more), from.Set.Exceptions(), from.Set.Overrides())
		if err != nil {
			from.Close()
			return nil, err
		}
	}
	return from, nil
}

// given are the policies that are not nil.
func given(list ...*policy.Policy) []*policy.Policy {
	return slices.DeleteFunc(list, func(p *policy.Policy) bool { return p == nil })
}

// material are documents that are evaluated as files: all exceptions apply.
type material struct {
	policies []workload.Object
	mirrors  *mirror.Set
	known    *engine.Resources
	root     []byte // a trusted root; nil: the public-good instance's
	answers  map[string][]byte
}

// fromFiles reads files and folders.
func (r reading) fromFiles(ctx context.Context) (*Inputs, error) {
	read, err := r.readFiles()
	if err != nil {
		return nil, err
	}
	return r.compile(ctx, read)
}

// readFiles reads the files of --policy, --resource, --mirrors and --trusted-root.
func (r reading) readFiles() (material, error) {
	var read material
	var err error
	read.root, err = command.OptionalFile("--trusted-root", r.TrustedRoot)
	if err != nil {
		return read, err
	}
	read.known, err = LoadResources(r.t, r.Resources)
	if err != nil {
		return read, err
	}
	read.policies, err = PolicyObjects(r.Policies)
	if err != nil {
		return read, err
	}
	read.mirrors, err = LoadMirrors(r.Mirrors)
	return read, err
}

// compile compiles documents into policies.
func (r reading) compile(ctx context.Context, read material) (*Inputs, error) {
	from := &Inputs{Known: read.known, Mirrors: read.mirrors}
	read.known.Evaluated = r.Evaluated
	var err error
	from.Store, err = r.trustStore(ctx, read.root, read.known, config.Trust{})
	if err != nil {
		return nil, err
	}
	loaded, err := engine.CompileDocuments(read.policies, read.known, r.Offline, r.clock)
	if err != nil {
		return nil, err
	}
	loaded.Answers = read.answers
	for _, warning := range loaded.Warnings {
		r.t.Warn(warning)
	}
	for _, p := range loaded.Policies {
		if p.OfServer {
			WarnNative(r.t, p)
		}
	}
	for _, object := range read.policies {
		from.asksUser = from.asksUser || bundle.Find(object.Content(), bundle.Defaults{}).AsksUser
	}
	if len(r.Policies) > 0 && len(loaded.Policies)+len(loaded.Overrides) == 0 {
		return nil, fmt.Errorf("--policy %s: no policy in it", strings.Join(r.Policies, ", "))
	}
	if r.own != nil {
		loaded.Policies = append(loaded.Policies, r.own)
	}
	if len(loaded.Policies) == 0 && !r.verifies {
		sources := "--policy"
		if r.Cluster.optional {
			sources += ", --bundle, --from-cluster"
		}
		return nil, fmt.Errorf("no policy or signer given: set %s, --key, --certificate-identity with --certificate-oidc-issuer, --notation-cert, or --source-uri", sources)
	}
	loaded.Policies = append(loaded.Policies, given(r.required)...)
	loaded.ReadRoots(ctx, r.Offline, UnreadRoot(r.t))
	from.Set, err = loaded.Set()
	from.Images, from.Answers = loaded.Images, loaded.Answers
	return from, err
}

// AsAdmitted makes inputs from those of a gateway, with a trusted root; nil: the public-good
// instance's.
func (f *Flags) AsAdmitted(ctx context.Context, t command.Terminal, reader *offline.Reader, root []byte) (*Inputs, error) {
	return f.admitted(ctx, t, reader, material{root: root, known: engine.NewResources()})
}

func (f *Flags) admitted(ctx context.Context, t command.Terminal, reader *offline.Reader, read material) (*Inputs, error) {
	for _, entry := range reader.Entries() {
		if entry.State != catalog.NotOurs && entry.Why != "" {
			t.Warn(entry.Source + ": " + entry.Why)
		}
	}
	for _, fault := range reader.Faults() {
		t.Warn(fault)
	}
	from := &Inputs{Mirrors: reader.Mirrors(), Images: reader.Images(), Known: read.known, pulls: reader.PullSecrets(), Reader: reader}
	var err error
	from.Store, err = f.trustStore(ctx, read.root, reader.Keys(), reader.Configuration().Trust)
	if err != nil {
		return nil, err
	}
	loaded := engine.Documents{Compilers: reader.Compilers(), Answers: read.answers}
	for _, entry := range reader.Entries() {
		if entry.Root != nil && entry.State == catalog.Ours {
			loaded.Roots = append(loaded.Roots, entry.Root)
		}
	}
	loaded.ReadRoots(ctx, f.Offline, UnreadRoot(t))
	from.Set, from.Answers = reader.Policies(), loaded.Answers
	return from, nil
}

// asksUser reports whether a document reads the requesting user.
func asksUser(text []byte) bool {
	object, err := workload.Parse(text)
	return err == nil && bundle.Find(object.Content(), bundle.Defaults{}).AsksUser
}

// UnreadRoot returns a function that reports a TUF repository that cannot be read.
func UnreadRoot(t command.Terminal) func(what string, err error) {
	return func(what string, err error) { fmt.Fprintf(t.Err, "quaymaster: %s: %s\n", what, err) }
}

// WarnNative passes on the warnings about a policy of the API server, which has no condition of the
// gateway.
func WarnNative(t command.Terminal, p *policy.Policy) {
	for _, warning := range p.Warnings {
		t.Warn(p.ID() + ": " + warning)
	}
}

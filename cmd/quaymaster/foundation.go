package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/bundle"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

// foundation is the input of verdicts: read from files, from a bundle or from a cluster.
type foundation struct {
	set     *set.Set
	mirrors *mirror.Set // nil for none
	images  *engine.RuleImages
	store   *trust.Store
	known   *engine.Resources // from files: namespaces, and credentials of policies
	pulls   gate.PullSecrets  // nil: unknown
	// reader is set if policies are evaluated as at admission.
	reader *gateway.Reader
	// asksUser reports that a policy reads the requesting user.
	asksUser bool
	// flags is the policy that the flags define, which applies to every object; nil for none.
	flags *policy.Policy
	// answers are the contents of the TUF repositories that policies name.
	answers map[string][]byte
}

func (from *foundation) close() {
	if from.reader != nil {
		from.reader.Close()
	}
}

// describe completes a request as at admission.
func (from *foundation) describe(ctx context.Context, request *gate.Request) {
	if from.reader == nil || request.Object.IsDocument() {
		return
	}
	from.reader.Place(request)
	from.reader.Configuration().AsAdmitted(request)
	from.reader.Describe(ctx, request)
}

// excludes reports whether the webhook configuration excludes a request.
func (from *foundation) excludes(request *gate.Request) bool {
	if from.reader == nil || request.Object.IsDocument() {
		return false
	}
	namespace := request.Subject.Namespace
	if namespace == "" && !request.ClusterScoped {
		namespace = request.Object.Namespace()
	}
	return from.reader.Excludes(namespace)
}

// found reads the inputs that the flags name.
func (f *setupFlags) found(ctx context.Context, t command.Terminal, authorities *authority.Flags, clock func() time.Time) (*foundation, error) {
	reading, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	fromFlags, err := f.flagPolicy(authorities)
	if err != nil {
		return nil, err
	}
	var from *foundation
	switch {
	case f.bundle.file != "":
		from, err = f.fromBundle(reading, t, fromFlags, clock)
	case f.cluster.context != "":
		from, err = f.fromCluster(reading, t, clock)
	default:
		from, err = f.fromFiles(reading, t, fromFlags, clock)
	}
	if err != nil {
		return nil, err
	}
	from.flags = fromFlags
	if fromFlags != nil && from.reader != nil {
		from.set, err = withPolicy(from.set, fromFlags)
		if err != nil {
			from.close()
			return nil, err
		}
	}
	return from, nil
}

// flagPolicy is the policy that the flags define; nil for none.
func (f *setupFlags) flagPolicy(authorities *authority.Flags) (*policy.Policy, error) {
	if f.offline && slices.ContainsFunc(authorities.Keys, trust.IsLookup) {
		return nil, errors.New("--offline opens no connection, and --key names a key management service")
	}
	return authorities.Policy()
}

// withPolicy adds a policy to a set.
func withPolicy(active *set.Set, more *policy.Policy) (*set.Set, error) {
	joined, err := set.New(append(slices.Clone(active.Policies()), more)...)
	if err != nil {
		return nil, err
	}
	joined, err = joined.With(active.Exceptions()...)
	if err != nil {
		return nil, err
	}
	return joined.WithOverrides(active.Overrides()...)
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
func (f *setupFlags) fromFiles(ctx context.Context, t command.Terminal, fromFlags *policy.Policy, clock func() time.Time) (*foundation, error) {
	read, err := f.readFiles()
	if err != nil {
		return nil, err
	}
	return f.compile(ctx, t, read, fromFlags, clock)
}

// readFiles reads the files of --policy, --resource, --mirrors and --trusted-root.
func (f *setupFlags) readFiles() (material, error) {
	var read material
	var err error
	read.root, err = command.OptionalFile("--trusted-root", f.trustedRoot)
	if err != nil {
		return read, err
	}
	read.known, err = loadResources(f.resources)
	if err != nil {
		return read, err
	}
	read.policies, err = policyObjects(f.policies)
	if err != nil {
		return read, err
	}
	read.mirrors, err = loadMirrors(f.mirrors)
	return read, err
}

// compile compiles documents into policies.
func (f *setupFlags) compile(ctx context.Context, t command.Terminal, read material, fromFlags *policy.Policy, clock func() time.Time) (*foundation, error) {
	from := &foundation{known: read.known, mirrors: read.mirrors}
	var err error
	from.store, err = f.trustStore(ctx, read.root, read.known, nil)
	if err != nil {
		return nil, err
	}
	loaded, err := loadPolicies(read.policies, read.known, f.offline, clock)
	if err != nil {
		return nil, err
	}
	loaded.answers = read.answers
	if len(f.policies) > 0 && len(loaded.policies)+len(loaded.overrides) == 0 {
		return nil, fmt.Errorf("--policy %s: no policy in it", strings.Join(f.policies, ", "))
	}
	if fromFlags != nil {
		loaded.policies = append(loaded.policies, fromFlags)
	}
	if len(loaded.policies) == 0 {
		return nil, errors.New("what must be proved? give --policy, --bundle, --from-cluster, --key, --certificate-identity with --certificate-oidc-issuer, or --notation-cert")
	}
	loaded.readRoots(ctx, f.offline, t)
	from.set, err = loaded.set()
	from.images, from.answers = loaded.images, loaded.answers
	return from, err
}

// asAdmitted makes a foundation from the inputs of a gateway.
func (f *setupFlags) asAdmitted(ctx context.Context, t command.Terminal, reader *gateway.Reader, root []byte,
	known *engine.Resources, answers map[string][]byte) (*foundation, error) {
	for _, entry := range reader.Entries() {
		if entry.State != catalog.NotOurs && entry.Why != "" {
			t.Warn(entry.Source + ": " + entry.Why)
		}
	}
	for _, fault := range reader.Faults() {
		t.Warn(fault)
	}
	from := &foundation{mirrors: reader.Mirrors(), images: reader.Images(), known: known, pulls: reader.PullSecrets(), reader: reader}
	var err error
	from.store, err = f.trustStore(ctx, root, reader.Keys(), reader.Configuration().Trust.Retired())
	if err != nil {
		return nil, err
	}
	loaded := documents{compilers: reader.Compilers(), answers: answers}
	for _, entry := range reader.Entries() {
		if entry.Root != nil && entry.State == catalog.Ours {
			loaded.roots = append(loaded.roots, entry.Root)
		}
	}
	loaded.readRoots(ctx, f.offline, t)
	from.set, from.answers = reader.Policies(), loaded.answers
	return from, nil
}

// asksUser reports whether a document reads the requesting user.
func asksUser(texts ...[]byte) bool {
	return slices.ContainsFunc(texts, func(text []byte) bool {
		object, err := workload.Parse(text)
		return err == nil && bundle.Find(object.Content(), bundle.Defaults{}).AsksUser
	})
}

package lookups

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// Lookups are the look-ups of a decision: in a cluster, or in files.
type Lookups struct {
	ConfigMaps kyverno.Lookup
	// RuleConfigMaps are those that the contexts of rules read; nil means ConfigMaps.
	RuleConfigMaps kyverno.Lookup
	Keys           trust.Secrets
	Secrets        keychain.Secrets
	// Credentials and accounts supply the credentials for registries.
	Credentials keychain.Secrets
	Accounts    keychain.Accounts
	Namespaces  admission.Namespaces
	Roles       admission.Roles // nil: not available
	Pulls       gate.PullSecrets
	Files       *Files // nil in a cluster
	// Cluster holds the clients; nil when running standalone.
	Cluster *Cluster
}

// inCluster looks things up at the API server.
func inCluster(in *Cluster, lookups *cluster.Lookups, namespaces *cluster.Namespaces, roles *cluster.Roles) Lookups {
	return Lookups{
		Cluster:    in,
		ConfigMaps: lookups, RuleConfigMaps: cluster.Fresh{Lookups: lookups}, Keys: cluster.Keys{Lookups: lookups},
		Secrets: lookups, Credentials: in.Held, Accounts: in.Held,
		Namespaces: namespaces, Roles: roles, Pulls: cluster.PullSecrets{Lookups: lookups},
	}
}

// inFiles looks things up in the current content of folders.
func inFiles(files *Files) Lookups {
	return Lookups{ConfigMaps: files, Keys: files, Secrets: fileSecrets{files}, Credentials: fileSecrets{files},
		Namespaces: files, Pulls: fileSecrets{files}, Files: files}
}

// Files are resources that are replaced as a whole when a folder changes.
type Files struct {
	Current atomic.Pointer[engine.Resources]
}

func newFiles() *Files {
	f := &Files{}
	f.Current.Store(engine.NewResources().Advising(InFolder))
	return f
}

// InFolder is the fix for a missing resource.
const InFolder = "put it into one of policies.folders"

// Consume returns Replace; nil for nil.
func (f *Files) Consume() func([]workload.Object) error {
	if f == nil {
		return nil
	}
	return f.Replace
}

// Replace sets the resources; if one cannot be read, nothing changes.
func (f *Files) Replace(objects []workload.Object) error {
	known := engine.NewResources().Advising(InFolder)
	var errs []error
	for _, object := range objects {
		errs = append(errs, known.Add(object))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.Current.Store(known)
	return nil
}

// ConfigMap implements kyverno.Lookup.
func (f *Files) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	return f.Current.Load().ConfigMap(ctx, namespace, name)
}

// Secret implements trust.Secrets.
func (f *Files) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	return f.Current.Load().Secret(ctx, namespace, name, key)
}

// Labels implements admission.Namespaces.
func (f *Files) Labels(_ context.Context, name string) (map[string]string, error) {
	labels, ok := f.Current.Load().Labels(name)
	if !ok {
		return nil, errors.New("no file describes the Namespace " + name + ": " + InFolder)
	}
	return labels, nil
}

// fileSecrets are the pull secrets among files.
type fileSecrets struct{ files *Files }

// Secret implements keychain.Secrets.
func (s fileSecrets) Secret(_ context.Context, namespace, name string) (string, map[string][]byte, error) {
	kind, data, err := s.files.Current.Load().SecretOf(namespace, name)
	if kind == "" {
		kind = string(core.SecretTypeDockerConfigJson) // a file may omit the type, which the API server requires
	}
	return kind, data, err
}

// Has implements gate.PullSecrets. Files do not show whether the cluster has a Secret that they
// lack.
func (s fileSecrets) Has(_ context.Context, namespace, name string) (bool, error) {
	if _, _, err := s.files.Current.Load().SecretOf(namespace, name); err != nil {
		return false, fmt.Errorf("no file has the Secret %s/%s: %s", namespace, name, InFolder)
	}
	return true, nil
}

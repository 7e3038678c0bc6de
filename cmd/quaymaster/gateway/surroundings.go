package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// surroundings are the look-ups of a decision: in a cluster, or in files.
type surroundings struct {
	configMaps kyverno.Lookup
	// ruleConfigMaps are those that the contexts of rules read; nil means configMaps.
	ruleConfigMaps kyverno.Lookup
	keys           trust.Secrets
	secrets        keychain.Secrets
	// credentials and accounts supply the credentials for registries.
	credentials keychain.Secrets
	accounts    keychain.Accounts
	namespaces  admission.Namespaces
	roles       admission.Roles // nil: not available
	pulls       gate.PullSecrets
	files       *files // nil in a cluster
}

// inCluster looks things up at the API server.
func inCluster(lookups *cluster.Lookups, namespaces *cluster.Namespaces, roles *cluster.Roles) surroundings {
	held := cluster.Held{Lookups: lookups}
	return surroundings{
		configMaps: lookups, ruleConfigMaps: cluster.Fresh{Lookups: lookups}, keys: cluster.Keys{Lookups: lookups},
		secrets: lookups, credentials: held, accounts: held,
		namespaces: namespaces, roles: roles, pulls: cluster.PullSecrets{Lookups: lookups},
	}
}

// inFiles looks things up in the current content of folders.
func inFiles(files *files) surroundings {
	return surroundings{configMaps: files, keys: files, secrets: fileSecrets{files}, credentials: fileSecrets{files},
		namespaces: files, pulls: fileSecrets{files}, files: files}
}

// files are resources that are replaced as a whole when a folder changes.
type files struct {
	current atomic.Pointer[engine.Resources]
}

func newFiles() *files {
	f := &files{}
	f.current.Store(engine.NewResources().Advising(inFolder))
	return f
}

// inFolder is the fix for a missing resource.
const inFolder = "put it into one of policies.folders"

// replace sets the resources; if one cannot be read, nothing changes.
func (f *files) replace(objects []workload.Object) error {
	known := engine.NewResources().Advising(inFolder)
	var errs []error
	for _, object := range objects {
		errs = append(errs, known.Add(object))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.current.Store(known)
	return nil
}

// ConfigMap implements kyverno.Lookup.
func (f *files) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	return f.current.Load().ConfigMap(ctx, namespace, name)
}

// Secret implements trust.Secrets.
func (f *files) Secret(ctx context.Context, namespace, name, key string) ([]byte, error) {
	return f.current.Load().Secret(ctx, namespace, name, key)
}

// Labels implements admission.Namespaces.
func (f *files) Labels(_ context.Context, name string) (map[string]string, error) {
	labels, ok := f.current.Load().Labels(name)
	if !ok {
		return nil, errors.New("no file describes the Namespace " + name + ": " + inFolder)
	}
	return labels, nil
}

// fileSecrets are the pull secrets among files.
type fileSecrets struct{ files *files }

// Secret implements keychain.Secrets.
func (s fileSecrets) Secret(_ context.Context, namespace, name string) (string, map[string][]byte, error) {
	kind, data, err := s.files.current.Load().SecretOf(namespace, name)
	if kind == "" {
		kind = string(core.SecretTypeDockerConfigJson) // a file may omit the type, which the API server requires
	}
	return kind, data, err
}

// Has implements gate.PullSecrets. Files do not show whether the cluster has a Secret that they
// lack.
func (s fileSecrets) Has(_ context.Context, namespace, name string) (bool, error) {
	if _, _, err := s.files.current.Load().SecretOf(namespace, name); err != nil {
		return false, fmt.Errorf("no file has the Secret %s/%s: %s", namespace, name, inFolder)
	}
	return true, nil
}

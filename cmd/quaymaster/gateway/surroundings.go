package gateway

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// surroundings are what a decision looks up: in a cluster, or in files.
type surroundings struct {
	configMaps kyverno.Lookup
	keys       trust.Secrets
	secrets    keychain.Secrets
	accounts   keychain.Accounts
	namespaces admission.Namespaces
	roles      admission.Roles // nil: nobody knows
}

// inCluster looks things up at the API server.
func inCluster(lookups *cluster.Lookups, namespaces *cluster.Namespaces, roles *cluster.Roles) surroundings {
	return surroundings{
		configMaps: lookups, keys: cluster.Keys{Lookups: lookups}, secrets: lookups, accounts: lookups,
		namespaces: namespaces, roles: roles,
	}
}

// inFiles looks things up in what folders hold at the moment.
func inFiles(files *files) surroundings {
	return surroundings{configMaps: files, keys: files, secrets: fileSecrets{files}, namespaces: files}
}

// files are resources that are replaced as a whole when a folder changes.
type files struct {
	current atomic.Pointer[engine.Resources]
}

func newFiles() *files {
	f := &files{}
	f.current.Store(engine.NewResources())
	return f
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
		return nil, errors.New("no file describes the Namespace " + name)
	}
	return labels, nil
}

// fileSecrets are the pull secrets among files.
type fileSecrets struct{ files *files }

// Secret implements keychain.Secrets.
func (s fileSecrets) Secret(_ context.Context, namespace, name string) (string, map[string][]byte, error) {
	return s.files.current.Load().SecretOf(namespace, name)
}

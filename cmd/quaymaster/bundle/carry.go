package bundle

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/workload"
)

// carry adds the objects that policies look up by name, and notes the others.
func (f *bundleCreate) carry(ctx context.Context, c *bundle.Contents, from *setup.Inputs) {
	defaults := bundle.Defaults{}
	if from.Reader != nil {
		policies := from.Reader.Configuration().Policies
		defaults = bundle.Defaults{Kyverno: policies.SecretNamespace, Sigstore: policies.ClusterImagePolicies.Namespace}
	}
	for _, item := range c.Policies {
		object, err := workload.Parse(item.Text)
		if err != nil {
			continue // it does not compile, which was reported
		}
		found := bundle.Find(object.Content(), defaults)
		note := func(format string, args ...any) {
			c.Notes = append(c.Notes, fmt.Sprintf("%s %s: ", object.Kind(), object.Name())+fmt.Sprintf(format, args...))
		}
		for _, gap := range found.Gaps {
			note("%s", gap)
		}
		for _, named := range found.ConfigMaps {
			if err := f.carryConfigMap(ctx, c, from.Reader, named); err != nil {
				note("the ConfigMap %s is not available (%v): rules that read it cannot be evaluated", named, err)
			}
		}
		for _, named := range found.Secrets {
			if err := f.carrySecret(ctx, c, from.Reader, named); err != nil {
				note("the Secret %s is not available (%v): signatures that depend on it cannot be verified", named, err)
			}
		}
		if found.AsksUser && from.Reader != nil {
			note("it depends on the requesting user: set --userinfo, with roles, when verifying")
		}
	}
}

func (f *bundleCreate) carryConfigMap(ctx context.Context, c *bundle.Contents, reader *offline.Reader, named bundle.Object) error {
	if c.HasResource("ConfigMap/" + named.String()) {
		return nil
	}
	if reader == nil {
		return errNoResource
	}
	content, err := reader.ConfigMaps().ConfigMap(ctx, named.Namespace, named.Name)
	if err != nil {
		return err
	}
	return c.AddConfigMap(named, content, "the cluster")
}

func (f *bundleCreate) carrySecret(ctx context.Context, c *bundle.Contents, reader *offline.Reader, named bundle.Object) error {
	if c.HasResource("Secret/" + named.String()) {
		return nil
	}
	if reader == nil {
		return errNoResource
	}
	kind, data, err := reader.Secrets().Secret(ctx, named.Namespace, named.Name)
	if err != nil {
		return err
	}
	return c.AddSecret(named, kind, data, "the cluster")
}

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
				note("it names the ConfigMap %s, which is not there (%v): a rule that wants it cannot be evaluated", named, err)
			}
		}
		for _, named := range found.Secrets {
			if err := f.carrySecret(ctx, c, from.Reader, named); err != nil {
				note("it names the Secret %s, which is not there (%v): what rests on it cannot be proved", named, err)
			}
		}
		if found.AsksUser && from.Reader != nil {
			note("it asks who makes a request: say who with --userinfo, and with which roles, where it is verified")
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

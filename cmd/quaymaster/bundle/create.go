package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/carried"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

// bundleCreate are the flags of bundle create.
type bundleCreate struct {
	setup  setup.Flags
	keys   []string
	output string
}

func bundleCreateCommand(t command.Terminal) *cobra.Command {
	var f bundleCreate
	cmd := &cobra.Command{
		Use:   "create -o FILE [--policy FILE] [--from-cluster]",
		Short: "Create a bundle of policies and trust",
		Long: `Create writes a bundle: policies, exceptions, overrides, TrustRoots, mirrors, the
trusted root, keys, and the ConfigMaps, public keys and namespaces that policies
look up, from files, from a cluster, or both. quaymaster verify --bundle uses it,
without network access if the images come from --oci-layout.

With --from-cluster or --gateway-config, the verdicts are those of the gateway at
admission; otherwise they are those of verify with the same files. Content that
cannot be included is reported here and at each use. Private keys, passwords and
pull secrets are never written. See docs/offline.md.

The command prints the digest of the file. Pin it with --bundle-digest: a user
who can replace the bundle controls which images may run.

Exit status: 0 if the bundle was written, also with content that could not be
included, 2 if it was not.`,
		Example: `  quaymaster bundle create -o bundle.tar.gz --policy policies/ --trusted-root trusted_root.json
  quaymaster bundle create -o bundle.tar.gz --from-cluster --context production
  quaymaster bundle create -o bundle.tar.gz --key cosign.pub --mirrors mirrors.yaml`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), t) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write; required")
	flags.StringArrayVarP(&f.setup.Policies, "policy", "p", nil, "policy `file` or folder; may be repeated")
	flags.StringArrayVar(&f.setup.Resources, "resource", nil, "`file` of ConfigMaps, Secrets and Namespaces for policies' look-ups; may be repeated")
	flags.StringArrayVar(&f.setup.Mirrors, "mirrors", nil, "`file` or folder of RegistryMirrors or equivalent documents; may be repeated")
	flags.StringVar(&f.setup.TrustedRoot, "trusted-root", "", "trusted_root.json `file` (default: the public-good instance's)")
	flags.BoolVar(&f.setup.RefreshTrust, "refresh-trust", false, "include the current trusted root of the public-good TUF repository")
	flags.StringArrayVar(&f.keys, "key", nil, "public key `file`; one of these keys must have signed each image")
	f.setup.Cluster.RegisterOptional(cmd)
	flags.DurationVar(&f.setup.Timeout, "timeout", 30*time.Second, "time for the whole run")
	return cmd
}

func (f *bundleCreate) check() error {
	s := &f.setup
	switch {
	case f.output == "":
		return errors.New("set the output file: -o FILE")
	case s.Timeout <= 0:
		return fmt.Errorf("--timeout %s must be positive", s.Timeout)
	case s.RefreshTrust && s.TrustedRoot != "":
		return errors.New("--refresh-trust contradicts --trusted-root")
	case len(s.Policies)+len(f.keys) == 0 && !s.Cluster.Use:
		return errors.New("no policy or key given: set --policy, --from-cluster or --key")
	}
	return s.Cluster.CheckNamed()
}

func (f *bundleCreate) run(ctx context.Context, t command.Terminal) error {
	if err := f.check(); err != nil {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, f.setup.Timeout)
	defer cancel()
	end := output.Wait(t, "reading policies and trust")
	contents, err := f.contents(reading, t)
	end()
	if err != nil {
		return err
	}
	slices.Sort(contents.Notes)
	contents.Notes = slices.Compact(contents.Notes)
	for _, note := range contents.Notes {
		t.Warn(note)
	}
	digest, err := bundle.WriteFile(f.output, contents)
	if err != nil {
		return fmt.Errorf("-o %s: %w", f.output, err)
	}
	fmt.Fprintf(t.Out, "%s  %s\n", digest, f.output)
	return nil
}

// contents gathers everything.
func (f *bundleCreate) contents(ctx context.Context, t command.Terminal) (*bundle.Contents, error) {
	c := &bundle.Contents{}
	var from *setup.Inputs
	var err error
	if f.setup.Cluster.Use {
		from, err = f.ofCluster(ctx, t, c)
	} else {
		from, err = f.ofFiles(ctx, t, c)
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	f.carry(ctx, c, from)
	for name, text := range from.Answers {
		c.Roots = append(c.Roots, bundle.Item{Name: name, Source: "its TUF repository", Text: text})
	}
	return c, f.trust(ctx, c)
}

// ofFiles reads files, and a gateway's settings if given.
func (f *bundleCreate) ofFiles(ctx context.Context, t command.Terminal, c *bundle.Contents) (*setup.Inputs, error) {
	if f.setup.Cluster.GatewayConfig != "" {
		settings, notes, err := f.setup.GatewaySettings(ctx, nil)
		if err != nil {
			return nil, err
		}
		c.Notes = append(c.Notes, notes...)
		c.Gateway, err = carried.Bundled(settings)
		if err != nil {
			return nil, err
		}
	}
	if err := f.addPolicies(c); err != nil {
		return nil, err
	}
	if err := f.addMirrors(c); err != nil {
		return nil, err
	}
	return f.setup.Read(ctx, t, authority.OfKeys(f.keys, false), time.Now) // it reports documents that cannot be used
}

// ofCluster reads a cluster and additional files.
func (f *bundleCreate) ofCluster(ctx context.Context, t command.Terminal, c *bundle.Contents) (*setup.Inputs, error) {
	reader, notes, err := f.setup.OpenCluster(ctx, t, time.Now)
	if err != nil {
		return nil, err
	}
	from, err := f.export(ctx, t, c, reader)
	if err != nil {
		reader.Close()
		return nil, err
	}
	c.Notes = append(c.Notes, notes...)
	return from, nil
}

func (f *bundleCreate) export(ctx context.Context, t command.Terminal, c *bundle.Contents, reader *offline.Reader) (*setup.Inputs, error) {
	root, err := command.OptionalFile("--trusted-root", f.setup.TrustedRoot)
	if err != nil {
		return nil, err
	}
	if err := f.addPolicies(c); err != nil {
		return nil, err
	}
	from, err := f.setup.AsAdmitted(ctx, t, reader, root)
	if err != nil {
		return nil, err
	}
	found, err := reader.Export(ctx)
	if err != nil {
		return nil, err
	}
	c.Gateway, err = carried.Bundled(reader.Configuration())
	if err != nil {
		return nil, err
	}
	c.Kinds, err = json.Marshal(found.Kinds)
	if err != nil {
		return nil, err
	}
	for _, d := range found.Policies {
		c.Policies = append(c.Policies, bundle.Item{Name: d.Key, Source: d.Source, Text: d.Text})
	}
	for _, d := range found.Mirrors {
		c.Mirrors = append(c.Mirrors, bundle.Item{Name: d.Key, Source: d.Source, Text: d.Text})
	}
	for _, value := range found.Globals {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if len(value.Value) == 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("the global context entry %s has no value (%s): a rule that wants it cannot be evaluated", value.Name, value.Why))
		}
		c.Globals = append(c.Globals, bundle.Item{Name: value.Name, Source: "the cluster", Text: text})
	}
	for _, object := range found.Resources {
		if err := c.AddResource(object, "the cluster"); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// addPolicies adds the documents of --policy and --resource. Their keys sort before those of a
// cluster, like a gateway's folders.
func (f *bundleCreate) addPolicies(c *bundle.Contents) error {
	objects, err := setup.PolicyObjects(f.setup.Policies)
	if err != nil {
		return err
	}
	twins := map[string]int{}
	for _, object := range objects {
		if engine.IsResource(object) {
			if err := c.AddResource(object, object.Source()); err != nil {
				return err
			}
			continue
		}
		item, err := itemOf("folders", object, twins)
		if err != nil {
			return err
		}
		c.Policies = append(c.Policies, item)
	}
	for _, name := range f.setup.Resources {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return fmt.Errorf("--resource %s: %w", name, err)
		}
		for _, object := range objects {
			if engine.IsResource(object) {
				if err := c.AddResource(object, object.Source()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addMirrors adds the mappings of --mirrors.
func (f *bundleCreate) addMirrors(c *bundle.Contents) error {
	objects, err := engine.ReadDocuments(f.setup.Mirrors)
	if err != nil {
		return fmt.Errorf("--mirrors: %w", err)
	}
	twins := map[string]int{}
	for _, object := range objects {
		item, err := itemOf("files", object, twins)
		if err != nil {
			return err
		}
		if _, err := mirror.Parse(item.Text, item.Source); errors.Is(err, mirror.ErrNoMapping) {
			continue // it may be meant for policies
		}
		c.Mirrors = append(c.Mirrors, item)
	}
	return nil
}

// itemOf names a document by its kind, namespace and name, independent of its file.
func itemOf(prefix string, object workload.Object, twins map[string]int) (bundle.Item, error) {
	text, err := json.Marshal(object.Content())
	if err != nil {
		return bundle.Item{}, fmt.Errorf("%s: %w", object.Source(), err)
	}
	name := strings.Join([]string{prefix, object.Kind(), object.Namespace(), object.Name()}, "/")
	item := bundle.Item{Name: fmt.Sprintf("%s#%06d", name, twins[name]), Source: object.Source(), Text: text}
	twins[name]++
	return item, nil
}

// trust adds the trusted root and the keys.
func (f *bundleCreate) trust(ctx context.Context, c *bundle.Contents) error {
	var err error
	c.TrustedRoot, err = command.OptionalFile("--trusted-root", f.setup.TrustedRoot)
	if err != nil {
		return err
	}
	if f.setup.RefreshTrust && c.TrustedRoot == nil {
		from := &trust.TUF{Client: &http.Client{Timeout: f.setup.Timeout, Transport: engine.GuardedTransport()}, CachePath: setup.TUFCache()}
		c.TrustedRoot, err = from.Fetch(ctx)
		if err != nil {
			return fmt.Errorf("the public-good TUF repository: %w", err)
		}
	}
	for _, name := range f.keys {
		if trust.IsLookup(name) {
			return fmt.Errorf("--key %s: a bundle holds keys themselves: get the public key first (cosign public-key --key %s)", name, name)
		}
		key, err := authority.ReadKey(name, "")
		if err != nil {
			return err
		}
		c.Keys = append(c.Keys, bundle.Item{Name: "--key " + name, Source: name, Text: []byte(key.Ref)})
	}
	return nil
}

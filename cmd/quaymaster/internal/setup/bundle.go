package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// bundleFlags name a bundle.
type bundleFlags struct {
	File, digest string
	read         *bundle.Read // set after reading
}

func (f *bundleFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.File, "bundle", "", "bundle `file` with policies, trust and their look-ups (quaymaster bundle create)")
	flags.StringVar(&f.digest, "bundle-digest", "", "`digest` (sha256:...) that the file of --bundle must have")
}

func (f *bundleFlags) check(setup *Flags) error {
	switch {
	case f.File == "" && f.digest != "":
		return errors.New("--bundle-digest is for --bundle FILE")
	case f.File == "":
		return nil
	case setup.Cluster.Use:
		return errors.New("--bundle and --from-cluster both say what a verdict rests on: give one")
	case len(setup.Policies)+len(setup.Resources)+len(setup.Mirrors) > 0 || setup.TrustedRoot != "" || setup.RefreshTrust:
		return errors.New("--bundle says what a verdict rests on, and --policy, --resource, --mirrors, --trusted-root and --refresh-trust would change that: make another bundle")
	}
	return nil
}

// open reads the bundle, once.
func (f *bundleFlags) open() (*bundle.Read, error) {
	if f.read != nil {
		return f.read, nil
	}
	var pinned image.Digest
	if f.digest != "" {
		var err error
		pinned, err = image.ParseDigest(f.digest)
		if err != nil {
			return nil, fmt.Errorf("--bundle-digest: %w", err)
		}
	}
	read, err := bundle.OpenFile(f.File, pinned)
	if err != nil {
		return nil, fmt.Errorf("--bundle: %w", err)
	}
	f.read = read
	return read, nil
}

// UnpackBundle reads the bundle, and adds its keys to those of --key.
func (f *Flags) UnpackBundle(authorities *authority.Flags) error {
	if err := f.check(); err != nil || f.Bundle.File == "" {
		return err
	}
	read, err := f.Bundle.open()
	if err != nil {
		return err
	}
	authorities.Bundled = read.Keys
	return nil
}

// fromBundle makes inputs from a bundle.
func (r reading) fromBundle(ctx context.Context) (*Inputs, error) {
	read, err := r.Bundle.open()
	if err != nil {
		return nil, err
	}
	for _, note := range read.Notes {
		r.t.Warn("the bundle: " + note)
	}
	found := material{root: read.TrustedRoot, answers: map[string][]byte{}}
	for _, item := range read.Roots {
		found.answers[item.Name] = item.Text
	}
	resources, err := bundledObjects(read.Resources)
	if err != nil {
		return nil, err
	}
	found.known = engine.NewResources().Advising("make the bundle again with --resource FILE")
	for _, object := range resources {
		if err := found.known.Add(object); err != nil {
			return nil, err
		}
	}
	var from *Inputs
	if read.Gateway == nil {
		from, err = r.bundledFiles(ctx, read, found)
	} else {
		from, err = r.bundledGateway(ctx, read, resources, found)
	}
	if err != nil {
		return nil, err
	}
	for _, item := range read.Policies {
		from.asksUser = from.asksUser || read.Gateway != nil && asksUser(item.Text)
	}
	return from, nil
}

// bundledFiles evaluates policies as if the bundle's source files were read.
func (r reading) bundledFiles(ctx context.Context, read *bundle.Read, found material) (*Inputs, error) {
	var err error
	found.policies, err = bundledObjects(read.Policies)
	if err != nil {
		return nil, err
	}
	var documents []*mirror.Document
	for _, item := range read.Mirrors {
		document, err := mirror.Parse(item.Text, item.Source)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	if len(documents) > 0 {
		found.mirrors, err = mirror.NewSet(documents...)
		if err != nil {
			return nil, err
		}
	}
	return r.compile(ctx, found)
}

// bundledGateway evaluates policies as the gateway that the bundle was created from.
func (r reading) bundledGateway(ctx context.Context, read *bundle.Read, resources []workload.Object, found material) (*Inputs, error) {
	settings, err := config.Parse(read.Gateway)
	if err != nil {
		return nil, fmt.Errorf("the bundle's gateway.json: %w", err)
	}
	given := &offline.Material{Policies: documentsOf(read.Policies), Mirrors: documentsOf(read.Mirrors), Resources: resources}
	if read.Kinds != nil {
		given.Kinds = []configuration.Resource{}
		if err := json.Unmarshal(read.Kinds, &given.Kinds); err != nil {
			return nil, fmt.Errorf("the bundle's kinds.json: %w", err)
		}
	}
	for _, item := range read.Globals {
		var value offline.GlobalValue
		if err := json.Unmarshal(item.Text, &value); err != nil {
			return nil, fmt.Errorf("the bundle's global context entry %s: %w", item.Name, err)
		}
		given.Globals = append(given.Globals, value)
	}
	reader, err := offline.NewReader(ctx, settings, offline.ReaderOptions{
		Version: r.t.Version(), Material: given, Offline: r.Offline, Now: r.clock,
	})
	if err != nil {
		return nil, err
	}
	from, err := r.admitted(ctx, r.t, reader, found)
	if err != nil {
		reader.Close()
	}
	return from, err
}

func documentsOf(items []bundle.Item) []offline.Written {
	list := make([]offline.Written, len(items))
	for i, item := range items {
		list[i] = offline.Written{Key: item.Name, Source: item.Source, Text: item.Text}
	}
	return list
}

// bundledObjects reads items that are objects.
func bundledObjects(items []bundle.Item) ([]workload.Object, error) {
	var objects []workload.Object
	for _, item := range items {
		read, err := workload.Read(strings.NewReader(string(item.Text)), item.Source)
		if err != nil {
			return nil, fmt.Errorf("the bundle's %s: %w", item.Name, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

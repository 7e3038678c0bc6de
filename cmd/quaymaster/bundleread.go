package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/bundle"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// bundleFlags name a bundle.
type bundleFlags struct {
	file, digest string
	read         *bundle.Read // set after reading
}

func (f *bundleFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "bundle", "", "bundle `file` with policies, trust and their look-ups (quaymaster bundle create)")
	flags.StringVar(&f.digest, "bundle-digest", "", "`digest` (sha256:...) that the file of --bundle must have")
}

func (f *bundleFlags) check(setup *setupFlags) error {
	switch {
	case f.file == "" && f.digest != "":
		return errors.New("--bundle-digest is for --bundle FILE")
	case f.file == "":
		return nil
	case setup.cluster.context != "":
		return errors.New("--bundle and --from-cluster both say what a verdict rests on: give one")
	case len(setup.policies)+len(setup.resources)+len(setup.mirrors) > 0 || setup.trustedRoot != "" || setup.refreshTrust:
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
	read, err := readBundle(f.file, pinned)
	if err != nil {
		return nil, fmt.Errorf("--bundle: %w", err)
	}
	f.read = read
	return read, nil
}

func readBundle(name string, pinned image.Digest) (*bundle.Read, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	read, err := bundle.Open(file, pinned)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return read, nil
}

// unpack reads the bundle, and adds its keys to those of --key.
func (f *setupFlags) unpack(authorities *authority.Flags) error {
	if err := f.check(); err != nil || f.bundle.file == "" {
		return err
	}
	read, err := f.bundle.open()
	if err != nil {
		return err
	}
	authorities.Bundled = read.Keys
	return nil
}

// fromBundle makes a foundation from a bundle.
func (f *setupFlags) fromBundle(ctx context.Context, t command.Terminal, fromFlags *policy.Policy, clock func() time.Time) (*foundation, error) {
	read, err := f.bundle.open()
	if err != nil {
		return nil, err
	}
	for _, note := range read.Notes {
		t.Warn("the bundle: " + note)
	}
	answers := map[string][]byte{}
	for _, item := range read.Roots {
		answers[item.Name] = item.Text
	}
	resources, err := bundledObjects(read.Resources)
	if err != nil {
		return nil, err
	}
	known := engine.NewResources().Advising("make the bundle again with --resource FILE")
	for _, object := range resources {
		if err := known.Add(object); err != nil {
			return nil, err
		}
	}
	var from *foundation
	if read.Gateway == nil {
		from, err = f.bundledFiles(ctx, t, read, known, answers, fromFlags, clock)
	} else {
		from, err = f.bundledGateway(ctx, t, read, resources, known, answers, clock)
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
func (f *setupFlags) bundledFiles(ctx context.Context, t command.Terminal, read *bundle.Read, known *engine.Resources, answers map[string][]byte,
	fromFlags *policy.Policy, clock func() time.Time) (*foundation, error) {
	found := material{known: known, root: read.TrustedRoot, answers: answers}
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
	return f.compile(ctx, t, found, fromFlags, clock)
}

// bundledGateway evaluates policies as the gateway that the bundle was created from.
func (f *setupFlags) bundledGateway(ctx context.Context, t command.Terminal, read *bundle.Read, resources []workload.Object, known *engine.Resources,
	answers map[string][]byte, clock func() time.Time) (*foundation, error) {
	settings, err := config.Parse(read.Gateway)
	if err != nil {
		return nil, fmt.Errorf("the bundle's gateway.json: %w", err)
	}
	found := &gateway.Material{Policies: documentsOf(read.Policies), Mirrors: documentsOf(read.Mirrors), Resources: resources}
	if read.Kinds != nil {
		found.Kinds = []configuration.Resource{}
		if err := json.Unmarshal(read.Kinds, &found.Kinds); err != nil {
			return nil, fmt.Errorf("the bundle's kinds.json: %w", err)
		}
	}
	for _, item := range read.Globals {
		var value gateway.GlobalValue
		if err := json.Unmarshal(item.Text, &value); err != nil {
			return nil, fmt.Errorf("the bundle's global context entry %s: %w", item.Name, err)
		}
		found.Globals = append(found.Globals, value)
	}
	reader, err := gateway.NewReader(ctx, settings, gateway.ReaderOptions{
		Version: t.Version(), Material: found, Offline: f.offline, Now: clock,
	})
	if err != nil {
		return nil, err
	}
	from, err := f.asAdmitted(ctx, t, reader, read.TrustedRoot, known, answers)
	if err != nil {
		reader.Close()
	}
	return from, err
}

func documentsOf(items []bundle.Item) []gateway.Written {
	list := make([]gateway.Written, len(items))
	for i, item := range items {
		list[i] = gateway.Written{Key: item.Name, Source: item.Source, Text: item.Text}
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

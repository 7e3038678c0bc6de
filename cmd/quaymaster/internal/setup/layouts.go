package setup

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/layout"
	"github.com/quaymaster/quaymaster/workload"
)

// openLayouts opens the layouts of --oci-layout for the requested images.
func openLayouts(t command.Terminal, names []string, requests []gate.Request) (gate.Registries, error) {
	var opened []*layout.Layout
	shut := func(err error) error {
		for _, one := range opened {
			err = errors.Join(err, one.Close())
		}
		return err
	}
	for _, name := range names {
		layout, err := openLayout(name)
		if err != nil {
			return nil, shut(fmt.Errorf("--oci-layout: %w", err))
		}
		opened = append(opened, layout)
	}
	joined, err := layout.Join(opened...)
	if err != nil {
		return nil, shut(fmt.Errorf("--oci-layout: %w", err))
	}
	for _, note := range joined.Notes() {
		t.Warn("--oci-layout " + note)
	}
	if repositories(requests) > 1 {
		joined = joined.OnlyFullNames()
	}
	return engine.LayoutRegistries{Layouts: joined}, nil
}

// openLayout opens a path, or REPOSITORY=PATH.
func openLayout(name string) (*layout.Layout, error) {
	of, path, named := strings.Cut(name, "=")
	if _, err := os.Stat(name); !named || err == nil { // a path may have an equals sign
		return layout.Open(name)
	}
	repository, err := image.ParseRepository(of)
	if err != nil {
		return nil, err
	}
	layout, err := layout.Open(path)
	if err != nil {
		return nil, err
	}
	return layout.Of(repository), nil
}

// repositories counts the repositories of the requested images; an unknown number counts as
// several.
func repositories(requests []gate.Request) int {
	const unknown = 2 // for a document, policies determine the images
	seen := map[image.Repository]bool{}
	for _, request := range requests {
		if request.Object.IsDocument() {
			return unknown
		}
		uses, err := workload.Extract(request.Object)
		if err != nil {
			continue // the gate reports the error
		}
		for _, use := range uses {
			if ref, err := image.Parse(use.Image); err == nil {
				seen[ref.Repository()] = true
			}
		}
	}
	return len(seen)
}

package setup

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// LoadMirrors compiles the mappings in files and folders; nil for no names. A file or folder
// without a mapping is an error.
func LoadMirrors(names []string) (*mirror.Set, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var documents []*mirror.Document
	var faults []error
	for _, name := range names {
		found, err := readMirrors(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("--mirrors: %w", err))
		}
		documents = append(documents, found...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	set, err := mirror.NewSet(documents...)
	if err != nil {
		return nil, fmt.Errorf("--mirrors: %w", err)
	}
	return set, nil
}

// readMirrors compiles the mappings of one file or folder.
func readMirrors(name string) ([]*mirror.Document, error) {
	objects, err := engine.ReadArguments([]string{name})
	if err != nil {
		return nil, err
	}
	var documents []*mirror.Document
	var faults []error
	for _, object := range objects {
		text, err := json.Marshal(object.Content())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.Source(), err)
		}
		switch found, err := mirror.Parse(text, object.Source()); {
		case errors.Is(err, mirror.ErrNoMapping): // it may be meant for policies
		case err != nil:
			faults = append(faults, err)
		default:
			documents = append(documents, found)
		}
	}
	if len(documents)+len(faults) == 0 {
		return nil, fmt.Errorf("%s: there is no mapping in it: want a RegistryMirror, an ImageDigestMirrorSet, an ImageTagMirrorSet or a ConfigMap of registries", name)
	}
	return documents, errors.Join(faults...)
}

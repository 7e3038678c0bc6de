package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/image/mirror"
)

// loadMirrors compiles the mappings in files and folders; nil for no names. A
// file without any is an error, because whoever named it meant something.
func loadMirrors(names []string) (*mirror.Set, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var documents []*mirror.Document
	var faults []error
	for _, name := range names {
		paths, err := manifestFiles(name)
		if err != nil {
			return nil, fmt.Errorf("--mirrors: %w", err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("--mirrors: %w", err)
			}
			found, err := mirror.ParseFile(text, path)
			if err != nil {
				faults = append(faults, fmt.Errorf("--mirrors: %w", err))
			}
			documents = append(documents, found...)
		}
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

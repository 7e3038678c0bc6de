package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// companion puts a second signature beside the first.
func (s *scene) companion(sheets []*sheet) []*sheet {
	first := sheets[0]
	second := page{}
	switch s.recipe.Beside {
	case "a good one":
		second = s.sign(s.image, false).pages[0]
	case "one by another signer":
		second = *s.donor(1)
	case ofAnother:
		second = *s.donor(0)
	case "junk":
		second = page{mediaType: first.pages[0].mediaType, body: []byte("junk"), annotations: map[string]string{}}
	case "itself":
		second = first.pages[0]
	}
	if first.suffix != "" {
		first.pages = append(first.pages, second)
		return sheets
	}
	beside := *first
	beside.pages = []page{second}
	return append(sheets, &beside)
}

// companions are the names of what can lie beside.
var companions = []string{"a good one", "one by another signer", ofAnother, "junk", "itself"}

const ofAnother = "one of another image"

// store puts the sheets into the registry, the first with its manifest bent.
func (s *scene) store(about registrytest.Descriptor, sheets []*sheet) {
	for i, one := range sheets {
		text := s.manifestOf(about, one)
		if i == 0 && len(s.recipe.Bent) > 0 {
			tree, err := parse(text)
			s.check(err)
			for _, c := range s.recipe.Bent {
				s.did = append(s.did, applyTree(c, tree, nil))
			}
			text = tree.text()
		}
		reference := registrytest.DigestOf(text)
		if one.suffix != "" {
			reference = strings.Replace(about.Digest, ":", "-", 1) + one.suffix
		}
		s.stored = append(s.stored, text, one.pages[0].body)
		s.put(reference, text)
	}
}

// put stores a manifest; one that no registry would take is left out.
func (s *scene) put(reference string, text []byte) {
	if json.Unmarshal(text, &struct {
		ArtifactType string
		Annotations  map[string]string
		Config       struct{ MediaType string }
		Subject      *registrytest.Descriptor
	}{}) != nil {
		s.did = append(s.did, "no registry takes it")
		return
	}
	s.registry.PutManifest(s.repository, reference, ocispec.MediaTypeImageManifest, text)
}

func (s *scene) manifestOf(about registrytest.Descriptor, of *sheet) []byte {
	var layers []any
	for _, p := range of.pages {
		blob := s.registry.PutBlob(s.repository, p.mediaType, p.body)
		layer := map[string]any{"mediaType": p.mediaType, "digest": blob.Digest, "size": blob.Size}
		if len(p.annotations) > 0 {
			layer["annotations"] = p.annotations
		}
		layers = append(layers, layer)
	}
	config := s.registry.PutBlob(s.repository, of.configType, []byte("{}"))
	manifest := map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "config": config, "layers": layers}
	if of.artifactType != "" {
		manifest["artifactType"] = of.artifactType
	}
	if len(of.annotations) > 0 {
		manifest["annotations"] = maps.Clone(of.annotations)
	}
	if of.suffix == "" {
		manifest["subject"] = map[string]any{"mediaType": about.MediaType, "digest": about.Digest, "size": about.Size}
	}
	text, err := json.Marshal(manifest)
	s.check(err)
	return text
}

// file writes something for a program to read, once.
func (s *scene) file(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.folder, fmt.Sprintf("%s-%s", strings.ReplaceAll(s.name, "/", "-"), name))
	if !slices.Contains(s.files, path) { // else a process may be reading it
		s.check(os.WriteFile(path, content, 0o600))
		s.files = append(s.files, path)
	}
	return path
}

// forget removes the files of a case that is over.
func (s *scene) forget() {
	for _, path := range s.files {
		_ = os.Remove(path)
	}
}

package differential

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
)

// printed is what cosign wrote about an image of printedContent, once for all cases
// that want the same.
type printed struct{ sheet *sheet }

const printedContent = "printed"

// password protects the keys that cosign 2 signs with; those of cosign 3 have none.
const password = "ahoy"

// asWritten leaves what a program can write without a network.
func (r *recipe) asWritten() {
	r.Certified, r.Log, r.Stamped = false, "none", false
	// cosign signs with the digest that belongs to the key, and verifies with another one
	// without a flag.
	r.OtherHash = isWide(r.Key)
	if r.Key == "ed25519" {
		r.Key = keyKinds[0] // cosign writes attestations by such keys that it cannot verify itself
	}
	if r.Format == bundles && (r.Writer == cosign2 || r.Attests) {
		r.Annotated = false // cosign 2 loses them, and an attestation has none
	}
}

// printed has the program sign an image, and takes its output.
func (s *scene) printed(image registrytest.Descriptor) *sheet {
	s.t.Helper()
	r := s.recipe
	name := fmt.Sprint(s.seed, r.Writer, r.Format, r.Attests, r.Annotated, r.Key, image.Digest)
	if s.made[name] == nil {
		s.made[name] = &printed{sheet: s.print(image, fmt.Sprintf("printed/%d", len(s.made)))}
	}
	kept := *s.made[name].sheet
	kept.pages = append([]page{}, kept.pages...)
	return &kept
}

func (s *scene) print(image registrytest.Descriptor, repository string) *sheet {
	s.t.Helper()
	content := printedContent
	if image.Digest == s.moved.Digest {
		content = "the other of " + printedContent
	}
	if found := s.registry.PutImage(repository, "1", content); found.Digest != image.Digest {
		s.t.Fatalf("the printed image has another digest than %s", s.repository)
	}
	r, program := s.recipe, s.judges[s.recipe.Writer]
	if r.Writer == cosign2 {
		program = program.With("COSIGN_PASSWORD=" + password)
	}
	args := []string{"sign"}
	if r.Attests {
		args = []string{"attest", "--type", scanType, "--predicate", s.file("predicate.json", []byte(`{"verdict": "clean"}`))}
	} else if r.Annotated {
		args = append(args, "-a", annotationName+"="+annotationValue)
	}
	args = append(args, "--key", s.imported(program), "--tlog-upload=false", fmt.Sprintf("--new-bundle-format=%t", r.Format == bundles))
	if r.Writer == cosign3 {
		args = append(args, "--use-signing-config=false")
	}
	program.Must(s.t, append(args, s.registry.Host()+"/"+repository+"@"+image.Digest)...)
	return s.read(repository, image)
}

// imported is the signer's private key as a file of cosign's.
func (s *scene) imported(program *peers.Program) string {
	s.t.Helper()
	pem, err := s.key("the signer").PrivatePEM()
	s.check(err)
	prefix := filepath.Join(s.folder, "imported", fmt.Sprint(s.seed, s.recipe.Writer, s.recipe.Format, s.recipe.Key))
	prefix = strings.ReplaceAll(prefix, " ", "-")
	if !isFile(prefix + ".key") {
		program.Must(s.t, "import-key-pair", "--key", s.file("private.pem", pem), "--output-key-prefix", prefix)
	}
	return prefix + ".key"
}

// read takes the one manifest that lies beside an image.
func (s *scene) read(repository string, image registrytest.Descriptor) *sheet {
	s.t.Helper()
	base := "http://" + s.registry.Host() + "/v2/" + repository
	var suffix, reference string
	if s.recipe.Format == tags {
		suffix = ".sig"
		if s.recipe.Attests {
			suffix = ".att"
		}
		reference = strings.Replace(image.Digest, ":", "-", 1) + suffix
	} else {
		var list struct{ Manifests []registrytest.Descriptor }
		s.decode(base+"/referrers/"+image.Digest, &list)
		if len(list.Manifests) != 1 {
			s.t.Fatalf("%s wrote %d referrers", s.recipe.Writer, len(list.Manifests))
		}
		reference = list.Manifests[0].Digest
	}
	var manifest struct {
		ArtifactType string
		Config       registrytest.Descriptor
		Layers       []registrytest.Descriptor
		Annotations  map[string]string
	}
	s.decode(base+"/manifests/"+reference, &manifest)
	out := &sheet{suffix: suffix, artifactType: manifest.ArtifactType, configType: manifest.Config.MediaType, annotations: manifest.Annotations}
	for _, layer := range manifest.Layers {
		content, err := fetch(s.t.Context(), base+"/blobs/"+layer.Digest)
		s.check(err)
		out.pages = append(out.pages, page{mediaType: layer.MediaType, body: content, annotations: layer.Annotations})
	}
	return out
}

func (s *scene) decode(url string, into any) {
	s.t.Helper()
	text, err := fetch(s.t.Context(), url)
	s.check(err)
	s.check(json.Unmarshal(text, into))
}

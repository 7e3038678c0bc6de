package layout

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// indexEntry is a descriptor in index.json.
type indexEntry struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	Platform     struct {
		Architecture string `json:"architecture"`
	} `json:"platform"`

	refs []image.Ref // see parsed
}

// Annotations by which a layout names its content.
const (
	annotationRefName   = "org.opencontainers.image.ref.name"
	annotationImageName = "io.containerd.image.name"
	annotationKind      = "kind"

	kindImage = "dev.cosignproject.cosign/image"
	kindIndex = "dev.cosignproject.cosign/imageIndex"
	kindSigs  = "dev.cosignproject.cosign/sigs"
	kindAtts  = "dev.cosignproject.cosign/atts"
)

// names are the names of an entry: a tag, or a whole reference.
func (e indexEntry) names() []string {
	var names []string
	for _, key := range []string{annotationRefName, annotationImageName} {
		if name := e.Annotations[key]; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// parsed returns the entry with those of its names that are whole references, parsed
// once and not for each tag that is looked for.
func (e indexEntry) parsed() indexEntry {
	for _, name := range e.names() {
		if ref, err := image.Parse(name); err == nil && strings.ContainsAny(name, "/:") {
			e.refs = append(e.refs, ref)
		}
	}
	return e
}

// hasTag reports whether an entry is named by tag, or by the whole reference.
func (e indexEntry) hasTag(repository image.Repository, tag string, onlyFull bool) bool {
	isTag := tag != "" && (e.Annotations[annotationRefName] == tag || e.Annotations[annotationImageName] == tag)
	if isTag && (!onlyFull || strings.HasPrefix(tag, "sha256-")) { // cosign's tags name a digest
		return true
	}
	return slices.ContainsFunc(e.refs, func(ref image.Ref) bool { return ref.Repository() == repository && ref.Tag() == tag })
}

// mayRefer reports whether an entry may be a referrer: it is a manifest by its type, or
// has no type, and nothing marks it as an image, of which a layout need not have all
// platforms. Named entries are found by their names.
func (e indexEntry) mayRefer() bool {
	kind, architecture := e.Annotations[annotationKind], e.Platform.Architecture
	isImage := kind == kindImage || kind == kindIndex || len(e.names()) > 0 || architecture != "" && architecture != "unknown"
	return !isImage && (e.MediaType == "" || content.IsManifestType(e.MediaType))
}

// index is the list of index.json.
type index []indexEntry

// findSaved finds the content of "cosign save": the one image under any tag that is not
// one of cosign's, and its signatures and attestations under those.
func (x index) findSaved(tag string) string {
	saved := ""
	for _, entry := range x {
		if kind := entry.Annotations[annotationKind]; kind == kindImage || kind == kindIndex {
			if saved != "" || len(entry.names()) > 0 {
				return ""
			}
			saved = entry.Digest
		}
	}
	stem, isCosign := strings.CutPrefix(tag, "sha256-")
	if !isCosign {
		return saved
	}
	for suffix, kind := range map[string]string{".sig": kindSigs, ".att": kindAtts} {
		if "sha256:"+strings.TrimSuffix(stem, suffix) == saved && strings.HasSuffix(stem, suffix) {
			return x.ofKind(kind)
		}
	}
	return ""
}

// mayRefer reports whether a manifest that cannot be read could name a subject.
func (x index) mayRefer(digest image.Digest) bool {
	return !slices.ContainsFunc(x, func(entry indexEntry) bool { return entry.Digest == digest.String() && !entry.mayRefer() })
}

func (x index) ofKind(kind string) string {
	for _, entry := range x {
		if entry.Annotations[annotationKind] == kind {
			return entry.Digest
		}
	}
	return ""
}

// names lists some tags, for a message.
func (x index) names() string {
	const most = 5
	var names []string
	for _, entry := range x {
		if name := entry.Annotations[annotationRefName]; name != "" && len(names) < most {
			names = append(names, content.Shorten(name))
		}
	}
	if len(names) == 0 {
		return "no tags: name the image by its digest"
	}
	return "the tags " + strings.Join(names, ", ")
}

// mediaType is the type from a manifest's entry in the index, else the type detected from
// its content: a layout has no headers, and the field inside is optional in OCI.
func (x index) mediaType(digest image.Digest, body []byte) string {
	for _, entry := range x {
		if entry.Digest == digest.String() && content.IsManifestType(entry.MediaType) {
			return entry.MediaType
		}
	}
	var parsed content.Outline
	switch err := json.Unmarshal(body, &parsed); {
	case err != nil || parsed.MediaType != "":
		return ""
	case parsed.Manifests != nil:
		return image.MediaTypeIndex
	case parsed.Config != nil:
		return image.MediaTypeManifest
	}
	return ""
}

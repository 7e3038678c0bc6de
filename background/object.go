package background

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// metadataOf returns the metadata of an object, which may be nil.
func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

func textOf(members map[string]any, name string) string {
	text, _ := members[name].(string)
	return text
}

// identity returns the identity of an object.
func identity(object map[string]any) record.Trigger {
	metadata := metadataOf(object)
	return record.Trigger{
		APIVersion: textOf(object, "apiVersion"), Kind: textOf(object, "kind"),
		Namespace: textOf(metadata, "namespace"), Name: textOf(metadata, "name"), UID: textOf(metadata, "uid"),
	}
}

// versionOf returns the version of an apiVersion.
func versionOf(apiVersion string) string {
	return apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// labelsOf returns the labels of an object.
func labelsOf(object map[string]any) map[string]string {
	written, _ := metadataOf(object)["labels"].(map[string]any)
	labels := make(map[string]string, len(written))
	for name := range written {
		labels[name] = textOf(written, name)
	}
	return labels
}

// leaving reports whether the object is being deleted.
func leaving(object map[string]any) bool {
	return textOf(metadataOf(object), "deletionTimestamp") != ""
}

// madeAt returns the creation time of an object. changedAt returns its last change by the times
// in managedFields.
func madeAt(object map[string]any) time.Time {
	return timeOf(metadataOf(object)["creationTimestamp"])
}

func changedAt(object map[string]any) time.Time {
	last := madeAt(object)
	fields, _ := metadataOf(object)["managedFields"].([]any)
	for _, f := range fields {
		members, _ := f.(map[string]any)
		if textOf(members, "subresource") != "" {
			continue
		}
		if at := timeOf(members["time"]); at.After(last) {
			last = at
		}
	}
	return last
}

func timeOf(value any) time.Time {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// noise are the metadata fields that the API server sets.
var noise = [...]string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// essence returns the object without its status and the fields that the API server sets.
func essence(object map[string]any) map[string]any {
	stripped := maps.Clone(object)
	delete(stripped, "status")
	if metadata := metadataOf(object); metadata != nil {
		metadata = maps.Clone(metadata)
		for _, name := range noise {
			delete(metadata, name)
		}
		stripped["metadata"] = metadata
	}
	return stripped
}

// sum is the hash of the content of an object, or of a part of it.
type sum [sha256.Size]byte

func sumOf(value any) sum {
	text, err := json.Marshal(value)
	if err != nil {
		return sum{} // decoded JSON can be encoded
	}
	return sha256.Sum256(text)
}

// labelOf returns a label value for a text: the text itself, or its digest.
func labelOf(text string) string {
	const most = 63
	fits := len(text) <= most
	for i := 0; i < len(text) && fits; i++ {
		c := text[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		fits = letter || i > 0 && i < len(text)-1 && (c == '-' || c == '_' || c == '.')
	}
	if fits {
		return text
	}
	digest := sha256.Sum256([]byte(text))
	return "sha256-" + hex.EncodeToString(digest[:20])
}

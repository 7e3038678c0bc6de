// Package inspect reads the parts of objects, as decoded JSON of an API server (Kubernetes 1.37), that rules about
// other objects depend on, and compares objects by digests.
package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// Metadata returns the metadata of an object, which may be nil.
func Metadata(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

// Text returns a member that is a text; empty for any other.
func Text(members map[string]any, name string) string {
	text, _ := members[name].(string)
	return text
}

// Identity returns the identity of an object.
func Identity(object map[string]any) record.Trigger {
	metadata := Metadata(object)
	return record.Trigger{
		APIVersion: Text(object, "apiVersion"), Kind: Text(object, "kind"),
		Namespace: Text(metadata, "namespace"), Name: Text(metadata, "name"), UID: Text(metadata, "uid"),
	}
}

// Version returns the version of an apiVersion.
func Version(apiVersion string) string {
	return apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
}

// Group returns the group of an apiVersion, empty for the core group.
func Group(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// Labels returns the labels of an object.
func Labels(object map[string]any) map[string]string {
	written, _ := Metadata(object)["labels"].(map[string]any)
	labels := make(map[string]string, len(written))
	for name := range written {
		labels[name] = Text(written, name)
	}
	return labels
}

// IsLeaving reports whether the object is being deleted.
func IsLeaving(object map[string]any) bool {
	return Text(Metadata(object), "deletionTimestamp") != ""
}

// CreatedAt returns the creation time of an object.
func CreatedAt(object map[string]any) time.Time {
	return timeOf(Metadata(object)["creationTimestamp"])
}

// ChangedAt returns the last change of an object by the times in managedFields.
func ChangedAt(object map[string]any) time.Time {
	last := CreatedAt(object)
	fields, _ := Metadata(object)["managedFields"].([]any)
	for _, f := range fields {
		members, _ := f.(map[string]any)
		if Text(members, "subresource") != "" {
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

// Essence returns the object without its status and the fields that the API server sets.
func Essence(object map[string]any) map[string]any {
	stripped := maps.Clone(object)
	delete(stripped, "status")
	if metadata := Metadata(object); metadata != nil {
		metadata = maps.Clone(metadata)
		for _, name := range noise {
			delete(metadata, name)
		}
		stripped["metadata"] = metadata
	}
	return stripped
}

// Sum is the hash of the content of an object, or of a part of it.
type Sum [sha256.Size]byte

// SumOf returns the hash of decoded JSON.
func SumOf(value any) Sum {
	text, err := json.Marshal(value)
	if err != nil {
		return Sum{} // decoded JSON can be encoded
	}
	return sha256.Sum256(text)
}

// LabelValue returns a label value for a text: the text itself, or its digest.
func LabelValue(text string) string {
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

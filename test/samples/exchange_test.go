package samples

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// exchange has the replacements for values of a policy that are not available here.
type exchange struct {
	registry    string // in place of every registry's host
	issuer      string // in place of every issuer of identities
	kms         string // in place of every key in a key management service
	publicKey   string // PEM
	certificate string // PEM, of notation's certificate authority
	stamps      string // PEM, of the timestamp authority
}

// read reads a file's documents.
func read(t testing.TB, file string) []map[string]any {
	t.Helper()
	content, err := os.Open(file)
	check(t, err)
	defer func() { _ = content.Close() }() // it was only read
	objects, err := workload.Read(content, file)
	check(t, err)
	var documents []map[string]any
	for _, object := range objects {
		documents = append(documents, object.Content())
	}
	return documents
}

// write writes documents one after the other, as JSON, which is YAML.
func write(t testing.TB, file string, documents []map[string]any) {
	t.Helper()
	var text []byte
	for _, document := range documents {
		one, err := json.Marshal(document)
		check(t, err)
		text = append(append(text, one...), '\n')
	}
	check(t, os.WriteFile(file, text, 0o600))
}

// apply returns the tree with everything exchanged; name is the tree's key
// in its parent.
func (x *exchange) apply(name string, tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		changed := make(map[string]any, len(tree))
		for key, value := range tree {
			changed[key] = x.apply(key, value)
		}
		return changed
	case []any:
		changed := make([]any, len(tree))
		for i, value := range tree {
			changed[i] = x.apply(name, value)
		}
		return changed
	case string:
		return x.text(name, tree)
	}
	return tree
}

// text exchanges a text, by its form and by its key.
func (x *exchange) text(name, text string) string {
	switch {
	case strings.Contains(text, "-----BEGIN PUBLIC KEY-----"):
		return x.publicKey
	case strings.Contains(text, "-----BEGIN CERTIFICATE-----") && name == "tsaCertChain":
		return x.stamps
	case strings.Contains(text, "-----BEGIN CERTIFICATE-----"):
		return x.certificate
	}
	switch name {
	case "kms":
		return x.kms
	case "issuer":
		return x.issuer
	case "predicateType":
		if strings.HasPrefix(text, "cosign.sigstore.dev/") {
			return "https://" + text // cosign 1 left it out; no cosign can write that any more
		}
	case "image", "imageReferences", "skipImageReferences", "glob":
		return x.reference(text)
	}
	return text
}

// reference exchanges the host of an image or a pattern; one without a host
// ("*") means every registry already.
func (x *exchange) reference(text string) string {
	host, rest, ok := strings.Cut(text, "/")
	if !ok || !strings.ContainsAny(host, ".:") {
		return text
	}
	return x.registry + "/" + rest
}

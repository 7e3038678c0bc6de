package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/workload"
)

// AddResource adds a ConfigMap, Secret or Namespace. The first of one name counts: files precede
// a cluster. Of a Secret only public keys and certificates are kept, and the names of its other
// entries, because policies read which entries exist.
func (c *Contents) AddResource(object workload.Object, source string) error {
	name := object.Kind() + "/" + resourceKey(object)
	if c.HasResource(name) {
		return nil
	}
	content := object.Content()
	if object.Kind() == "Secret" {
		var lost []string
		content, lost = publicOnly(content)
		for _, entry := range lost {
			c.Notes = append(c.Notes, fmt.Sprintf("the entry %s of Secret %s is no public key and no certificate, and is not carried", entry, resourceKey(object)))
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	c.Resources = append(c.Resources, Item{Name: name, Source: source, Text: text})
	return nil
}

// HasResource reports whether there is a resource of the name KIND/NAMESPACE/NAME.
func (c *Contents) HasResource(name string) bool {
	return slices.ContainsFunc(c.Resources, func(item Item) bool { return item.Name == name })
}

func resourceKey(object workload.Object) string {
	namespace := object.Namespace()
	if namespace == "" && object.Kind() != "Namespace" {
		namespace = "default"
	}
	return namespace + "/" + object.Name()
}

// publicOnly removes the values of entries that are not public, and returns the entries' names.
func publicOnly(content map[string]any) (map[string]any, []string) {
	kept := map[string]any{}
	var lost []string
	keep := func(name string, value []byte) {
		if !isPublic(value) {
			lost = append(lost, name)
			value = nil
		}
		kept[name] = base64.StdEncoding.EncodeToString(value)
	}
	encoded, _ := content["data"].(map[string]any)
	for name, value := range encoded {
		decoded, _ := base64.StdEncoding.DecodeString(fmt.Sprint(value)) // invalid base64 is not public
		keep(name, decoded)
	}
	plain, _ := content["stringData"].(map[string]any)
	for name, value := range plain {
		keep(name, fmt.Append(nil, value))
	}
	slices.Sort(lost)
	// Annotations may repeat the whole content (kubectl apply).
	given, _ := content["metadata"].(map[string]any)
	named := map[string]any{"name": given["name"]}
	if namespace, ok := given["namespace"]; ok {
		named["namespace"] = namespace
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": content["type"], "data": kept}, lost
}

// isPublic reports whether a value consists of PEM blocks of public keys and certificates alone:
// no text precedes, separates or follows them.
func isPublic(value []byte) bool {
	rest := bytes.TrimSpace(value)
	for first := true; first || len(rest) > 0; first = false {
		block, after := pem.Decode(rest)
		if block == nil || !slices.Contains([]string{"PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE"}, block.Type) || len(block.Headers) > 0 {
			return false
		}
		begin, of := []byte("-----BEGIN "), rest[:len(rest)-len(after)]
		if !bytes.HasPrefix(of, begin) || bytes.Count(of, begin) > 1 {
			return false
		}
		rest = bytes.TrimSpace(after)
	}
	return true
}

// AddConfigMap adds a ConfigMap that policies look up by its name.
func (c *Contents) AddConfigMap(named Object, content map[string]any, source string) error {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": content["metadata"], "data": content["data"], "binaryData": content["binaryData"],
	})
	if err != nil {
		return err
	}
	c.Resources = append(c.Resources, Item{Name: "ConfigMap/" + named.String(), Source: source, Text: text})
	return nil
}

// AddSecret adds the public part of a Secret that policies look up by its name.
func (c *Contents) AddSecret(named Object, kind string, data map[string][]byte, source string) error {
	encoded := map[string]any{}
	for name, value := range data {
		encoded[name] = base64.StdEncoding.EncodeToString(value)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": named.Namespace, "name": named.Name}, "type": kind, "data": encoded,
	})
	if err != nil {
		return err
	}
	object, err := workload.Parse(text)
	if err != nil {
		return err
	}
	return c.AddResource(object, source)
}

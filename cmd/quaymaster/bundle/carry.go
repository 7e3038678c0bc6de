package bundle

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/offline"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/workload"
)

// addResource adds a ConfigMap, Secret or Namespace. The first of one name counts: files precede
// a cluster. Of a Secret only public keys and certificates are kept, and the names of its other
// entries, because policies read which entries exist.
func addResource(c *bundle.Contents, object workload.Object, source string) error {
	name := object.Kind() + "/" + resourceKey(object)
	if slices.ContainsFunc(c.Resources, func(item bundle.Item) bool { return item.Name == name }) {
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
	c.Resources = append(c.Resources, bundle.Item{Name: name, Source: source, Text: text})
	return nil
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

// carry adds the objects that policies look up by name, and notes the others.
func (f *bundleCreate) carry(ctx context.Context, c *bundle.Contents, from *setup.Inputs) {
	defaults := bundle.Defaults{}
	if from.Reader != nil {
		policies := from.Reader.Configuration().Policies
		defaults = bundle.Defaults{Kyverno: policies.SecretNamespace, Sigstore: policies.ClusterImagePolicies.Namespace}
	}
	for _, item := range c.Policies {
		object, err := workload.Parse(item.Text)
		if err != nil {
			continue // it does not compile, which was reported
		}
		found := bundle.Find(object.Content(), defaults)
		note := func(format string, args ...any) {
			c.Notes = append(c.Notes, fmt.Sprintf("%s %s: ", object.Kind(), object.Name())+fmt.Sprintf(format, args...))
		}
		for _, gap := range found.Gaps {
			note("%s", gap)
		}
		for _, named := range found.ConfigMaps {
			if err := f.carryConfigMap(ctx, c, from.Reader, named); err != nil {
				note("it names the ConfigMap %s, which is not there (%v): a rule that wants it cannot be asked", named, err)
			}
		}
		for _, named := range found.Secrets {
			if err := f.carrySecret(ctx, c, from.Reader, named); err != nil {
				note("it names the Secret %s, which is not there (%v): what rests on it cannot be proved", named, err)
			}
		}
		if found.AsksUser && from.Reader != nil {
			note("it asks who makes a request: say who with --userinfo, and with which roles, where it is verified")
		}
	}
}

func has(c *bundle.Contents, name string) bool {
	return slices.ContainsFunc(c.Resources, func(item bundle.Item) bool { return item.Name == name })
}

func (f *bundleCreate) carryConfigMap(ctx context.Context, c *bundle.Contents, reader *offline.Reader, named bundle.Object) error {
	if has(c, "ConfigMap/"+named.String()) {
		return nil
	}
	if reader == nil {
		return errNoResource
	}
	content, err := reader.ConfigMaps().ConfigMap(ctx, named.Namespace, named.Name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": content["metadata"], "data": content["data"], "binaryData": content["binaryData"],
	})
	if err != nil {
		return err
	}
	c.Resources = append(c.Resources, bundle.Item{Name: "ConfigMap/" + named.String(), Source: "the cluster", Text: text})
	return nil
}

func (f *bundleCreate) carrySecret(ctx context.Context, c *bundle.Contents, reader *offline.Reader, named bundle.Object) error {
	if has(c, "Secret/"+named.String()) {
		return nil
	}
	if reader == nil {
		return errNoResource
	}
	kind, data, err := reader.Secrets().Secret(ctx, named.Namespace, named.Name)
	if err != nil {
		return err
	}
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
	return addResource(c, object, "the cluster")
}

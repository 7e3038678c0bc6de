package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/workload"
)

// Resources are the objects of a cluster that policies look up, from files.
type Resources struct {
	configMaps map[string]map[string]any // by namespace/name
	secrets    map[string]map[string][]byte
	namespaces map[string]map[string]string // labels by name
}

// NewResources returns none.
func NewResources() *Resources {
	return &Resources{
		configMaps: map[string]map[string]any{}, secrets: map[string]map[string][]byte{},
		namespaces: map[string]map[string]string{},
	}
}

// Add keeps a ConfigMap, Secret or Namespace; an object of another kind is left
// alone, so that a folder of manifests can be given.
func (r *Resources) Add(object workload.Object) error {
	key := namespaced(object.Namespace(), object.Name())
	content := object.Content()
	switch {
	case object.Group() != "":
	case object.Kind() == "ConfigMap":
		r.configMaps[key] = content
	case object.Kind() == "Namespace":
		labels := map[string]string{}
		metadata, _ := content["metadata"].(map[string]any)
		written, _ := metadata["labels"].(map[string]any)
		for name, value := range written {
			labels[name] = fmt.Sprint(value)
		}
		r.namespaces[object.Name()] = labels
	case object.Kind() == "Secret":
		data, err := secretData(content)
		if err != nil {
			return fmt.Errorf("Secret %s: %w", key, err)
		}
		r.secrets[key] = data
	}
	return nil
}

// IsResource reports whether policies can look an object of the kind up.
func IsResource(object workload.Object) bool {
	switch object.Kind() {
	case "ConfigMap", "Secret", "Namespace":
		return object.Group() == ""
	}
	return false
}

func namespaced(namespace, name string) string {
	if namespace == "" {
		namespace = "default"
	}
	return namespace + "/" + name
}

func secretData(content map[string]any) (map[string][]byte, error) {
	data := map[string][]byte{}
	encoded, _ := content["data"].(map[string]any)
	for key, value := range encoded {
		decoded, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", key, err)
		}
		data[key] = decoded
	}
	plain, _ := content["stringData"].(map[string]any)
	for key, value := range plain {
		data[key] = []byte(fmt.Sprint(value))
	}
	return data, nil
}

// DescribeNamespaces adds what is known of the objects' namespaces. Labels that
// nobody gave are unknown, not empty: a policy that selects by them cannot be
// asked then.
func (r *Resources) DescribeNamespaces(requests []gate.Request) {
	for i := range requests {
		subject := &requests[i].Subject
		name := subject.Namespace
		if name == "" {
			name = requests[i].Object.Namespace()
		}
		labels, known := r.namespaces[name]
		if !known {
			continue
		}
		subject.NamespaceKnown, subject.NamespaceLabels = true, maps.Clone(labels)
		subject.NamespaceLabels["kubernetes.io/metadata.name"] = name // as the API server sets it
	}
}

// Secret implements trust.Secrets.
func (r *Resources) Secret(_ context.Context, namespace, name, key string) ([]byte, error) {
	data, ok := r.secrets[namespaced(namespace, name)]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s is not among the resources: give it with --resource FILE", namespace, name)
	}
	value, ok := data[key]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", namespace, name, key)
	}
	return value, nil
}

// ConfigMap returns a ConfigMap, as policies see it.
func (r *Resources) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	content, ok := r.configMaps[namespaced(namespace, name)]
	if !ok {
		return nil, errors.New("it is not among the resources: give it with --resource FILE")
	}
	return content, nil
}

// PullSecret reads a Secret of type kubernetes.io/dockerconfigjson.
func (r *Resources) PullSecret(name string) (registry.Source, error) {
	namespace, secret, ok := strings.Cut(name, "/")
	if !ok {
		namespace, secret = "", name
	}
	data, ok := r.secrets[namespaced(namespace, secret)]
	if !ok {
		return registry.Source{}, fmt.Errorf("pull secret %s is not among the resources: give it with --resource FILE", name)
	}
	file, err := config.LoadFromReader(bytes.NewReader(data[".dockerconfigjson"]))
	if err != nil {
		return registry.Source{}, fmt.Errorf("pull secret %s: no readable .dockerconfigjson", name)
	}
	return registry.Source{Name: "the pull secret " + name, Keychain: fileKeychain{file}}, nil
}

// fileKeychain gives the credentials of one docker configuration.
type fileKeychain struct{ file *configfile.ConfigFile }

// Resolve implements authn.Keychain. Only what stands in the file is read: a
// pull secret that names a credential helper would otherwise run a program.
func (k fileKeychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	hosts := []string{target.String(), target.RegistryStr(), "https://" + target.RegistryStr()}
	if target.RegistryStr() == name.DefaultRegistry {
		hosts = append(hosts, authn.DefaultAuthKey, "docker.io")
	}
	for _, host := range hosts {
		found, ok := k.file.AuthConfigs[host]
		if !ok {
			continue
		}
		return authn.FromConfig(authn.AuthConfig{
			Username: found.Username, Password: found.Password, Auth: found.Auth,
			IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
		}), nil
	}
	return authn.Anonymous, nil
}

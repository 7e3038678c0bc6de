package native

import (
	"bytes"
	"fmt"
	"path"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/manifest"
)

// title begins every written text.
const title = "Converted by quaymaster convert --to native: the API server evaluates this, and no gateway does."

// YAML returns the policies with their bindings as one text of several documents, in their order.
func YAML(policies []Policy) ([]byte, error) {
	var all []byte
	for i := range policies {
		text, err := policies[i].yaml()
		if err != nil {
			return nil, err
		}
		all = append(all, text...)
	}
	return titled(all), nil
}

// separator begins a document.
const separator = "---\n"

// titled begins a text with its title, as a part of the first document: an API server refuses a document that has
// comments alone.
func titled(documents []byte) []byte {
	return append([]byte(ivp.Comment(title)), bytes.TrimPrefix(documents, []byte(separator))...)
}

// The folders of files: the API server reads one for each kind, and refuses other kinds there.
const (
	validatingFolder = "validating"
	mutatingFolder   = "mutating"
	// Configuration is the name of the file for the API server's --admission-control-config-file.
	Configuration = "admission.yaml"
)

// Files returns the files of static policies by their slash-separated paths: one for each policy, and the
// API server's Configuration, in which at is the absolute path of their folder on its machine.
func Files(policies []Policy, at string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for i := range policies {
		p := &policies[i]
		text, err := p.yaml()
		if err != nil {
			return nil, err
		}
		folder := validatingFolder
		if p.Mutating != nil {
			folder = mutatingFolder
		}
		files[path.Join(folder, p.Name+".yaml")] = titled(text)
	}
	configuration, err := configurationOf(files, at)
	if err != nil {
		return nil, err
	}
	files[Configuration] = configuration
	return files, nil
}

// pluginConfiguration names a plugin of the API server's admission, and the folder of its files.
type pluginConfiguration struct {
	Name          string `json:"name"`
	Configuration struct {
		APIVersion         string `json:"apiVersion"`
		Kind               string `json:"kind"`
		StaticManifestsDir string `json:"staticManifestsDir"`
	} `json:"configuration"`
}

func configurationOf(files map[string][]byte, at string) ([]byte, error) {
	const version = "apiserver.config.k8s.io/v1"
	var plugins []pluginConfiguration
	for _, one := range []struct{ name, folder string }{{"MutatingAdmissionPolicy", mutatingFolder}, {"ValidatingAdmissionPolicy", validatingFolder}} {
		used := false
		for name := range files {
			used = used || path.Dir(name) == one.folder
		}
		if !used {
			continue // a folder that is named must exist
		}
		p := pluginConfiguration{Name: one.name}
		p.Configuration.APIVersion, p.Configuration.Kind, p.Configuration.StaticManifestsDir = version, one.name+"Configuration", path.Join(at, one.folder)
		plugins = append(plugins, p)
	}
	return manifest.Marshal(struct {
		APIVersion string                `json:"apiVersion"`
		Kind       string                `json:"kind"`
		Plugins    []pluginConfiguration `json:"plugins"`
	}{version, "AdmissionConfiguration", plugins})
}

// written is an object as a file has it: without status.
type written struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   writtenNames `json:"metadata"`
	Spec       any          `json:"spec"`
}

type writtenNames struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func of(t meta.TypeMeta, m meta.ObjectMeta, spec any) written {
	return written{APIVersion: t.APIVersion, Kind: t.Kind, Metadata: writtenNames{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}, Spec: spec}
}

// yaml returns the policy and its binding, each a document.
func (p *Policy) yaml() ([]byte, error) {
	var objects []written
	if v := p.Validating; v != nil {
		objects = append(objects, of(v.Policy.TypeMeta, v.Policy.ObjectMeta, v.Policy.Spec), of(v.Binding.TypeMeta, v.Binding.ObjectMeta, v.Binding.Spec))
	}
	if m := p.Mutating; m != nil {
		objects = append(objects, of(m.Policy.TypeMeta, m.Policy.ObjectMeta, m.Policy.Spec), of(m.Binding.TypeMeta, m.Binding.ObjectMeta, m.Binding.Spec))
	}
	var out bytes.Buffer
	for i, o := range objects {
		text, err := manifest.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.Kind, p.Name, err)
		}
		out.WriteString(separator)
		for _, note := range p.Notes {
			if i == 0 {
				out.WriteString(ivp.Comment(note))
			}
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

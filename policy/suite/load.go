package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/suite/cluster"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/workload"
)

// FileName is the default name of a suite's file; OldName is the name for the older form.
const (
	FileName = "kyverno-test.yaml"
	OldName  = "test.yaml"
)

// maxSuites bounds the suites of a run; the largest public library has 500.
const maxSuites = 10_000

// Find returns the suites at paths: a file itself, and the files of a name in a folder,
// recursively and sorted. With FileName it also finds files called OldName that hold a suite.
func Find(paths []string, name string) ([]string, error) {
	var found []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			found = append(found, filepath.Clean(path))
			continue
		}
		below, err := findBelow(path, name)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
		if len(found) > maxSuites {
			return nil, fmt.Errorf("%s: more than %d suites", path, maxSuites)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func findBelow(folder, name string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
		case entry.Name() == name:
			found = append(found, path)
		case name == FileName && entry.Name() == OldName:
			if documents, err := document.Documents(path); err == nil && slices.ContainsFunc(documents, document.IsSuite) {
				found = append(found, path)
			}
		}
		return nil
	})
	return found, err
}

// loaded is a suite with everything that it names.
type loaded struct {
	*document.Suite
	folder         string
	policies       []evaluation.Policy
	apart          []notEvaluated
	exceptionFiles []workload.Object
	resources      []workload.Object
	payloads       []workload.Object
	targets        []workload.Object
	values         *fixtures.Values
	user           *policy.User // nil if no user is given
	cluster        *cluster.Cluster
	unknown        fixtures.Unknown
	warnings       []string // about rows
}

// notEvaluated is a document among the policies that is not evaluated, or a whole file of them.
type notEvaluated struct {
	evaluation.Policy
	why string
}

// load reads the suite of a document, and the files that it names.
func load(text workload.Object, path string, kinds []constraint.Resource) (*loaded, error) {
	s := &loaded{folder: filepath.Dir(path), cluster: cluster.New(kinds), values: &fixtures.Values{}}
	d, err := document.Parse(text.JSON(), &s.unknown)
	if err != nil {
		return nil, err
	}
	s.Suite = d
	return s, s.read()
}

// read reads the files in the order of their dependencies: definitions make the kinds of objects known.
func (s *loaded) read() error {
	for _, step := range []func() error{s.readValues, s.readCluster, s.readPolicies, s.readObjects, s.hold} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (s *loaded) file(name string) string { return filepath.Join(s.folder, name) }

func (s *loaded) readValues() error {
	switch {
	case s.Values != nil:
		if err := s.Values.Check(); err != nil {
			return fmt.Errorf("values: %w", err)
		}
		s.values = s.Values
	case s.Variables != "":
		values, err := fixtures.LoadValues(s.file(s.Variables), &s.unknown)
		if err != nil {
			return fmt.Errorf("variables: %w", err)
		}
		s.values = values
	}
	if s.UserInfo != "" {
		user, err := fixtures.LoadUser(s.file(s.UserInfo), &s.unknown)
		if err != nil {
			return fmt.Errorf("userinfo: %w", err)
		}
		s.user = &user
	}
	return nil
}

// readCluster reads the objects that replace a cluster.
func (s *loaded) readCluster() error {
	for i, e := range s.Calls {
		if err := e.Check(); err != nil {
			return fmt.Errorf("apiCallResponses[%d]: %w", i, err)
		}
	}
	s.cluster.Calls = s.Calls
	for _, name := range s.ClusterResources {
		if err := s.readClusterResource(s.file(name)); err != nil {
			return fmt.Errorf("clusterResources: %w", err)
		}
	}
	if s.Context != "" {
		if err := s.readContext(s.file(s.Context)); err != nil {
			return fmt.Errorf("context: %w", err)
		}
	}
	return nil
}

// readClusterResource reads objects of the cluster: a ClusterResource of Kyverno's, or plain
// manifests.
func (s *loaded) readClusterResource(path string) error {
	text, err := document.ReadFile(path)
	if err != nil {
		return err
	}
	var file struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       struct {
			CRDs      []string         `json:"crds"`
			Resources []map[string]any `json:"resources"`
		} `json:"spec"`
	}
	var unknown fixtures.Unknown
	if err := unknown.Decode(text, &file, path); err != nil || file.Kind != "ClusterResource" {
		objects, read := readObjects(path)
		s.cluster.Add(s.inNamespace(objects)...)
		return read
	}
	s.unknown.Fields = append(s.unknown.Fields, unknown.Fields...)
	for _, name := range file.Spec.CRDs {
		objects, err := readObjects(s.file(name))
		if err != nil {
			return err
		}
		s.cluster.Add(objects...)
	}
	return s.addToCluster(file.Spec.Resources, path)
}

// readContext reads Kyverno's file for the look-ups of expressions.
func (s *loaded) readContext(path string) error {
	var file struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       struct {
			Resources []map[string]any     `json:"resources"`
			Images    []document.ImageData `json:"images"`
		} `json:"spec"`
	}
	text, err := document.ReadFile(path)
	if err != nil {
		return err
	}
	if err := s.unknown.Decode(text, &file, path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if file.Kind != "Context" {
		return fmt.Errorf("%s: %q is no Context", path, file.Kind)
	}
	s.cluster.Images = file.Spec.Images
	return s.addToCluster(file.Spec.Resources, path)
}

func (s *loaded) addToCluster(contents []map[string]any, source string) error {
	for i, content := range contents {
		object, err := objectOf(content)
		if err != nil {
			return fmt.Errorf("%s: resources[%d]: %w", source, i, err)
		}
		s.cluster.Add(s.inNamespace([]workload.Object{object})...)
	}
	return nil
}

func objectOf(content map[string]any) (workload.Object, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return workload.Object{}, err
	}
	return workload.Parse(text)
}

// readObjects reads the evaluated objects. Of duplicates by kind, namespace and name the first
// counts.
func (s *loaded) readObjects() error {
	var err error
	s.resources, err = s.objects(s.Resources, "resources")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	s.resources = slices.DeleteFunc(s.resources, func(o workload.Object) bool {
		key := keyOf(o)
		defer func() { seen[key] = true }()
		return seen[key]
	})
	s.targets, err = s.objects(s.TargetResources, "targetResources")
	if err != nil {
		return err
	}
	parameters, err := s.objects(s.ParamResources, "paramResources")
	if err != nil {
		return err
	}
	if err := s.readCloned(); err != nil {
		return err
	}
	s.cluster.Add(parameters...)
	s.cluster.Add(s.targets...)
	s.cluster.Add(s.resources...)
	for _, name := range s.JSONPayloads {
		read, err := readDocuments(s.file(name))
		if err != nil {
			return fmt.Errorf("jsonPayloads: %w", err)
		}
		s.payloads = append(s.payloads, read...)
	}
	return nil
}

// keyOf names an object, as Kyverno does to find duplicates.
func keyOf(o workload.Object) string {
	return o.Group() + "," + o.Kind() + "," + o.Namespace() + "," + o.Name()
}

func (s *loaded) objects(names []string, field string) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range names {
		objects, err := readObjects(s.file(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		for _, object := range objects { // they may define the kinds of the others
			s.cluster.Define(object)
		}
		all = append(all, objects...)
	}
	return s.inNamespace(all), nil
}

// inNamespace puts objects that name no namespace into default.
func (s *loaded) inNamespace(objects []workload.Object) []workload.Object {
	return evaluation.InNamespace(objects, "default", s.cluster.Kinds)
}

// readPolicies reads policies, exceptions, and objects for look-ups. A file of policies with an error
// does not hide the others.
func (s *loaded) readPolicies() error {
	if len(s.Policies) == 0 {
		return errors.New("policies: is empty")
	}
	for _, name := range s.Policies {
		objects, err := readObjects(s.file(name))
		if err != nil {
			s.apart = append(s.apart, notEvaluated{why: fmt.Sprintf("policies: %v", err)})
		}
		for _, object := range s.inNamespace(objects) {
			_, defines := constraint.Defined(object)
			switch {
			case object.Kind() == "PolicyException":
				s.exceptionFiles = append(s.exceptionFiles, object)
			case defines || engine.IsResource(object) || globalcontext.Recognises(object.APIVersion(), object.Kind()):
				s.cluster.Add(object)
			default:
				s.policies = append(s.policies, evaluation.Policy{Object: object})
			}
		}
	}
	for _, name := range s.Exceptions {
		objects, err := readObjects(s.file(name))
		if err != nil {
			return fmt.Errorf("exceptions: %w", err)
		}
		s.exceptionFiles = append(s.exceptionFiles, objects...)
	}
	return nil
}

// readObjects reads manifests: a file, or the files of a folder. With an error it returns the objects of
// the other files.
func readObjects(path string) ([]workload.Object, error) {
	if strings.Contains(path, "https:/") || strings.Contains(path, "http:/") {
		return nil, fmt.Errorf("%s: URLs are not supported: store a copy next to the suite", path)
	}
	if err := limit.CheckRegular(path); err != nil {
		return nil, err
	}
	objects, err := engine.ReadDocuments([]string{path})
	objects, wrong := constraint.CheckDefinitions(objects, constraint.Known())
	return objects, errors.Join(err, wrong)
}

func readDocuments(path string) ([]workload.Object, error) {
	if err := limit.CheckRegular(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return workload.ReadDocuments(file, path)
}

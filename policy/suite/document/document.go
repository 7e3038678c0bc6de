// Package document reads the file of a test suite, in the format of Kyverno 1.19 ("kyverno test").
//
// Unknown fields are warnings, older spellings are converted to the newer ones. Fields that have no
// effect are listed by Ignored.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/policy/suite/signing"
	"github.com/quaymaster/quaymaster/workload"
)

// Suite is a suite's file.
type Suite struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Name       string          `json:"name"` // of the older form

	Policies         []string `json:"policies"`
	Resources        []string `json:"resources"`
	ClusterResources []string `json:"clusterResources"`
	TargetResources  []string `json:"targetResources"`
	ParamResources   []string `json:"paramResources"`
	Exceptions       []string `json:"exceptions"`
	JSONPayload      string   `json:"jsonPayload"`
	JSONPayloads     []string `json:"jsonPayloads"`
	HTTPPayloads     []string `json:"httpPayloads"`
	EnvoyPayloads    []string `json:"envoyPayloads"`

	Variables string           `json:"variables"`
	Values    *fixtures.Values `json:"values"`
	UserInfo  string           `json:"userinfo"`
	Context   string           `json:"context"`
	Calls     []Call           `json:"apiCallResponses"`
	Globals   []GlobalEntry    `json:"globalContextEntries"`

	Results []Row `json:"results"`
	Checks  []any `json:"checks"`

	// Fields that are not Kyverno's.
	Images      []signing.Image `json:"images"`
	Keys        []signing.Key   `json:"keys"`
	TrustedRoot string          `json:"trustedRoot"`
}

// Row is an expectation.
type Row struct {
	Policy             string         `json:"policy"`
	Rule               string         `json:"rule"`
	Kind               string         `json:"kind"`
	Result             string         `json:"result"`
	Resources          []string       `json:"resources"`
	ResourceSpecs      []ResourceSpec `json:"resourceSpecs"`
	Operation          string         `json:"operation"`
	PatchedResources   string         `json:"patchedResources"`
	GeneratedResource  string         `json:"generatedResource"`
	GeneratedResources any            `json:"generatedResources"` // a file or several
	CloneSource        string         `json:"cloneSourceResource"`
	FailOnMissing      *bool          `json:"failOnMissingResources"`

	IsValidatingAdmission bool `json:"isValidatingAdmissionPolicy"`
	IsMutatingAdmission   bool `json:"isMutatingAdmissionPolicy"`
	IsValidating          bool `json:"isValidatingPolicy"`
	IsImageValidating     bool `json:"isImageValidatingPolicy"`
	IsMutating            bool `json:"isMutatingPolicy"`
	IsGenerating          bool `json:"isGeneratingPolicy"`
	IsDeleting            bool `json:"isDeletingPolicy"`

	// Of older forms.
	Status          string `json:"status"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"` // of the objects
	PatchedResource string `json:"patchedResource"`
}

// ResourceSpec selects an object of a row.
type ResourceSpec struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Subresource string `json:"subresource"`
	Name        string `json:"name"`
}

// Call is the response to a call.
type Call struct {
	URL      string `json:"url"`
	URLPath  string `json:"urlPath"`
	Method   string `json:"method"`
	Response struct {
		StatusCode int `json:"statusCode"`
		Body       any `json:"body"`
	} `json:"response"`
}

// GlobalEntry is the value of a GlobalContextEntry.
type GlobalEntry struct {
	Name          string           `json:"name"`
	Data          any              `json:"data"`
	Resources     []map[string]any `json:"resources"`
	ResourceFiles []string         `json:"resourceFiles"`
	FieldPath     string           `json:"fieldPath"`
	Projections   []struct {
		Name string `json:"name"`
		Path string `json:"path"`
	} `json:"projections"`
}

// maxFile bounds a file of a suite, in bytes; the largest known has 100 kB.
const maxFile = 16 << 20

// ReadFile reads a file of bounded size.
func ReadFile(path string) ([]byte, error) { return limit.ReadRegular(path, maxFile, path) }

// Documents reads the documents of a file, each of which is a suite.
func Documents(path string) ([]workload.Object, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return workload.ReadDocuments(bytes.NewReader(text), path)
}

// IsSuite reports whether a document is a suite; other files may have the same name.
func IsSuite(d workload.Object) bool {
	content := d.Content()
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	return content["policies"] != nil && content["results"] != nil && isTest(apiVersion, kind)
}

// isTest reports whether a document's kind is that of suites. The older form names none, or Kyverno's
// own group.
func isTest(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return slices.Contains([]string{"", "cli.kyverno.io", "kyverno.io"}, group) && (kind == "" || kind == "Test")
}

// Parse reads a suite from JSON and refuses contradictions.
func Parse(text []byte, unknown *fixtures.Unknown) (*Suite, error) {
	var d Suite
	if err := unknown.DecodeJSON(text, &d, ""); err != nil {
		return nil, err
	}
	if !isTest(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no suite: want cli.kyverno.io/v1alpha1 Test", d.APIVersion, d.Kind)
	}
	var meta struct {
		Name string `json:"name"`
	}
	if len(d.Metadata) > 0 {
		if err := json.Unmarshal(d.Metadata, &meta); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	if meta.Name != "" {
		d.Name = meta.Name
	}
	var errs []error
	for i := range d.Results {
		if err := d.Results[i].normalise(); err != nil {
			errs = append(errs, fmt.Errorf("results[%d]%w", i, err))
		}
	}
	switch {
	case len(d.HTTPPayloads) > 0:
		errs = append(errs, errors.New("httpPayloads: policies for HTTP requests are not supported"))
	case len(d.EnvoyPayloads) > 0:
		errs = append(errs, errors.New("envoyPayloads: policies for Envoy are not supported"))
	case len(d.Checks) > 0:
		errs = append(errs, errors.New("checks: assertions about whatever rules answer are not supported: write a row of results for each object"))
	case len(d.Images) == 0 && (len(d.Keys) > 0 || d.TrustedRoot != ""):
		errs = append(errs, errors.New("keys and trustedRoot are for images, and images is empty"))
	}
	if d.JSONPayload != "" {
		d.JSONPayloads = append(d.JSONPayloads, d.JSONPayload)
	}
	return &d, errors.Join(errs...)
}

// normalise converts older spellings to the newer ones.
func (r *Row) normalise() error {
	if r.Result == "" {
		r.Result = r.Status
	}
	if r.Resources == nil && r.Resource != "" {
		r.Resources = []string{r.Resource}
	}
	if r.PatchedResources == "" {
		r.PatchedResources = r.PatchedResource
	}
	if r.Policy == "" {
		return errors.New(".policy: is empty")
	}
	if i := slices.Index(r.Resources, ""); i >= 0 {
		return fmt.Errorf(".resources[%d]: is empty: want the name of an object", i)
	}
	if i := slices.IndexFunc(r.ResourceSpecs, func(s ResourceSpec) bool { return s.Name == "" }); i >= 0 {
		return fmt.Errorf(".resourceSpecs[%d].name: is empty: want the name of an object", i)
	}
	if known := []string{evaluation.Pass, evaluation.Fail, evaluation.Skip, evaluation.Warn, evaluation.Error}; !slices.Contains(known, r.Result) {
		return fmt.Errorf(".result: %q: want one of %s", r.Result, strings.Join(known, ", "))
	}
	if known := []string{"", "CREATE", "UPDATE", "DELETE", "CONNECT"}; !slices.Contains(known, r.Operation) {
		return fmt.Errorf(".operation: %q: want CREATE, UPDATE, DELETE or CONNECT", r.Operation)
	}
	return nil
}

// Generated returns the files that the row compares generated objects with.
func (r *Row) Generated() ([]string, error) {
	var files []string
	if r.GeneratedResource != "" {
		files = append(files, r.GeneratedResource)
	}
	switch more := r.GeneratedResources.(type) {
	case nil:
	case string:
		files = append(files, more)
	case []any:
		for _, item := range more {
			name, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("generatedResources: want names of files, found %v", item)
			}
			files = append(files, name)
		}
	default:
		return nil, fmt.Errorf("generatedResources: want a file or a list of them, found %v", more)
	}
	return files, nil
}

// Names reports whether the row names its objects.
func (r *Row) Names() bool { return len(r.Resources)+len(r.ResourceSpecs) > 0 }

// Selects reports whether the row selects policies of a kind; without a selection, those of kyverno.io.
func (r *Row) Selects(kind string) bool {
	switch strings.TrimPrefix(kind, "Namespaced") {
	case "ValidatingPolicy":
		return r.IsValidating
	case "ImageValidatingPolicy":
		return r.IsImageValidating
	case "MutatingPolicy":
		return r.IsMutating
	case "GeneratingPolicy":
		return r.IsGenerating
	case "DeletingPolicy":
		return r.IsDeleting
	case "ValidatingAdmissionPolicy":
		return r.IsValidatingAdmission
	case "MutatingAdmissionPolicy":
		return r.IsMutatingAdmission
	case "ClusterPolicy", "Policy", "CleanupPolicy", "ClusterCleanupPolicy":
		return !r.IsValidatingAdmission && !r.IsMutatingAdmission && !r.IsValidating && !r.IsImageValidating && !r.IsMutating && !r.IsGenerating && !r.IsDeleting
	}
	return false
}

// IsOfKind reports whether an object has the kind and the namespace of the row, if it names some.
func (r *Row) IsOfKind(o workload.Object) bool {
	return (r.Kind == "" || r.Kind == o.Kind() || o.IsDocument()) && (r.Namespace == "" || r.Namespace == o.Namespace())
}

// Is reports whether an object is selected.
func (s ResourceSpec) Is(o workload.Object) bool {
	return (s.Kind == "" || s.Kind == o.Kind()) && (s.Version == "" && (s.Group == "" || s.Group == o.Group()) ||
		s.Group == o.Group() && s.Version == o.Version()) &&
		(s.Namespace == "" || s.Namespace == o.Namespace()) && wildcard.Match(s.Name, o.Name())
}

// Check refuses an entry that no call matches.
func (e Call) Check() error {
	switch {
	case (e.URL == "") == (e.URLPath == ""):
		return errors.New("want one of url and urlPath")
	case e.URLPath != "" && !strings.HasPrefix(e.URLPath, "/"):
		return fmt.Errorf("urlPath %q: want an absolute path", e.URLPath)
	case e.Method != "" && !strings.EqualFold(e.Method, "GET") && !strings.EqualFold(e.Method, "POST"):
		return fmt.Errorf("method %q: want GET or POST", e.Method)
	case e.Response.Body == nil:
		return errors.New("response.body: is missing")
	}
	if e.URL != "" {
		if u, err := url.Parse(e.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("url %q: want https://host[/path]", e.URL)
		}
	}
	return nil
}

// ImageData is the suite's data of an image.
type ImageData struct {
	Image         string `json:"image"`
	ResolvedImage string `json:"resolvedImage"`
	Registry      string `json:"registry"`
	Repository    string `json:"repository"`
	Tag           string `json:"tag"`
	Digest        string `json:"digest"`
	ImageIndex    any    `json:"imageIndex"`
	Manifest      any    `json:"manifest"`
	Config        any    `json:"config"`
}

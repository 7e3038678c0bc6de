package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Extractor is an entry of imageExtractors as it is written.
type Extractor struct {
	Path     string `json:"path"`
	Value    string `json:"value"`
	Name     string `json:"name"`
	Key      string `json:"key"`
	JMESPath string `json:"jmesPath"`
}

// CompileExtractors reads imageExtractors, by kind. One with a jmesPath makes the
// reference by evaluating it on the text that was found.
func CompileExtractors(engine *jmespath.Engine, doc map[string][]Extractor, path string) (map[string][]policy.Extractor, error) {
	compiled := make(map[string][]policy.Extractor, len(doc))
	var errs []error
	for kind, list := range doc {
		for i, e := range list {
			place := fmt.Sprintf("%s.%s[%d]", path, kind, i)
			if !strings.HasPrefix(e.Path, "/") {
				errs = append(errs, field.Fail(place+".path", "want a path from the object's root, such as /spec/image, found %q", e.Path))
			}
			out := policy.Extractor{Name: e.Name, Path: e.Path, Value: e.Value, Key: e.Key}
			if e.JMESPath != "" {
				query, err := engine.Compile(e.JMESPath)
				errs = append(errs, field.Below(place+".jmesPath", err))
				out.Transform = transform(query)
			}
			compiled[kind] = append(compiled[kind], out)
		}
	}
	return compiled, errors.Join(errs...)
}

func transform(query *jmespath.Query) func(string) (string, error) {
	return func(text string) (string, error) {
		value, err := query.Search(text)
		if err != nil {
			return "", err
		}
		reference, ok := value.(string)
		if !ok || reference == "" {
			return "", fmt.Errorf("the jmesPath %s gives %s, and no image reference", query, jmespath.Text(value))
		}
		return reference, nil
	}
}

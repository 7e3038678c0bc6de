package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
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

// CompileExtractors reads imageExtractors, by kind: kinds of the rule's match, since those of another
// one are never used. One with a jmesPath makes the reference by evaluating it on the text that was
// found.
func CompileExtractors(engine *jmespath.Engine, doc map[string][]Extractor, of match.Block, path string) (map[string][]policy.Extractor, error) {
	compiled := make(map[string][]policy.Extractor, len(doc))
	var errs []error
	for _, kind := range slices.Sorted(maps.Keys(doc)) {
		list := doc[kind]
		errs = append(errs, checkKind(kind, list, of, path+"."+kind))
		for i, e := range list {
			place := fmt.Sprintf("%s.%s[%d]", path, kind, i)
			errs = append(errs, e.checkPath(place+".path"))
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

// checkKind refuses a kind that match does not select, so that the images of the one that was meant
// would not be found.
func checkKind(kind string, list []Extractor, of match.Block, path string) error {
	switch {
	case len(list) == 0:
		return field.Fail(path, "is empty, and so no image would be found: name a path, or leave the kind out")
	case strings.Contains(kind, "/"):
		return field.Fail(path, "want the kind alone, such as %s", kind[strings.LastIndexByte(kind, '/')+1:])
	case !of.ReadsKinds(), of.SelectsKind(kind):
		return nil
	case of.SelectsKind("Pod") && slices.Contains(match.PodControllers(), kind):
		return nil // a rule follows from the one about pods
	}
	return field.Fail(path, "match selects no %s, and so no image would be found: write the kind as in match", kind)
}

// checkPath refuses what is no JSON pointer, and one of a field without a name, which no object has.
func (e Extractor) checkPath(path string) error {
	if !strings.HasPrefix(e.Path, "/") {
		return field.Fail(path, "want a path from the object's root, such as /spec/image, found %q", e.Path)
	}
	if strings.Contains(e.Path+"/", "//") {
		return field.Fail(path, "%q names an empty field, and so no image would be found", e.Path)
	}
	if rest := strings.NewReplacer("~0", "", "~1", "").Replace(e.Path); strings.Contains(rest, "~") {
		return field.Fail(path, "%q: in a name write ~ as ~0, and / as ~1", e.Path)
	}
	return nil
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

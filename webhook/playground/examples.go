package playground

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

//go:embed examples
var examples embed.FS

// Example is an element of api/v1/examples.
type Example struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	trial.Documents
}

// ExampleList is the response of api/v1/examples.
type ExampleList struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Items      []Example `json:"items"`
}

// Examples returns the examples, in their order. Each is a folder; the comment in the first line of its policies
// is its title.
func Examples() ([]Example, error) {
	folders, err := examples.ReadDir("examples")
	if err != nil {
		return nil, err
	}
	var all []Example
	for _, folder := range folders {
		one := Example{}
		_, one.ID, _ = strings.Cut(folder.Name(), "-") // a number gives the order
		for name, text := range map[string]*string{
			"policies.yaml": &one.Policies, "objects.yaml": &one.Objects, "parameters.yaml": &one.Parameters, "exceptions.yaml": &one.Exceptions,
		} {
			content, err := examples.ReadFile(path.Join("examples", folder.Name(), name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			*text = string(bytes.TrimLeft(content, "\n"))
		}
		title, _, _ := strings.Cut(one.Policies, "\n")
		title, found := strings.CutPrefix(title, "# ")
		if !found {
			return nil, fmt.Errorf("example %s: the first line of its policies is no comment", folder.Name())
		}
		one.Title = title
		all = append(all, one)
	}
	return all, nil
}

func loadExamples() (*page.File, error) {
	all, err := Examples()
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(ExampleList{report.APIVersion, "ExampleList", all})
	if err != nil {
		return nil, err
	}
	return page.NewFile("application/json", append(body, '\n')), nil
}

package command

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

// MaxDocument bounds the data of an expression, in bytes, as API servers bound requests.
const MaxDocument = 3 << 20

// ReadDocument reads the document of a flag, YAML or JSON, as encoding/json decodes it. The file - is standard
// input.
func ReadDocument(t Terminal, flag, file string) (any, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = limit.ReadAll(t.In, MaxDocument, "standard input")
	} else {
		text, err = limit.ReadFile(file, MaxDocument, file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if !jsontext.Value(text).IsValid() { // JSON is not always YAML: keys may be of any length
		text, err = yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: YAML: %w", flag, file, yamlline.Readable(err))
		}
	}
	var data any
	if err := json.Unmarshal(text, &data); err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, file, strictjson.Readable(err))
	}
	return data, nil
}

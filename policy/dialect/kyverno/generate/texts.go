package generate

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// toTexts writes numbers and booleans as text in fields for which the API server accepts text
// alone: in the values of labels, annotations and label selectors, and in those of a ConfigMap's
// data and a Secret's. A variable as the whole value has the type of its value, such as the
// number of elementIndex. The object is changed in place.
func toTexts(object map[string]any, kind policy.ObjectKind) {
	labelsToTexts(object)
	if kind.APIVersion != "v1" {
		return
	}
	switch kind.Kind {
	case "ConfigMap":
		valuesToTexts(object["data"])
	case "Secret":
		valuesToTexts(object["stringData"])
	}
}

// labelsToTexts does so in all metadata and selectors of a value, those of templates
// included.
func labelsToTexts(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			switch key {
			case "metadata":
				metadata, _ := member.(map[string]any)
				valuesToTexts(metadata["labels"])
				valuesToTexts(metadata["annotations"])
			case "matchLabels", "nodeSelector":
				valuesToTexts(member)
			default:
				labelsToTexts(member)
			}
		}
	case []any:
		for _, item := range v {
			labelsToTexts(item)
		}
	}
}

// valuesToTexts changes the values of an object; anything else is left to the API server.
func valuesToTexts(value any) {
	members, _ := value.(map[string]any)
	for key, member := range members {
		switch member.(type) {
		case string, nil, map[string]any, []any:
		default:
			members[key] = jmespath.Text(member)
		}
	}
}

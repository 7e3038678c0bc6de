package schemas

import "strings"

const keepUnknown = "x-kubernetes-preserve-unknown-fields"

// Structural returns an upstream schema without defaults and without required fields, with unknown
// fields kept at each level, and with the first sentence of each description, or none.
func Structural(upstream map[string]any, describe bool) map[string]any {
	made := make(map[string]any)
	for key, value := range upstream {
		switch key {
		case "default":
		case "description":
			if text, ok := value.(string); ok && describe {
				made[key] = firstSentence(text)
			}
		case "properties":
			made[key] = each(value, func(v map[string]any) map[string]any { return Structural(v, describe) })
		case "items", "additionalProperties":
			made[key] = value
			if below, ok := value.(map[string]any); ok {
				made[key] = Structural(below, describe)
			}
		case "required", "oneOf", "anyOf", "allOf", "not":
			// Missing and contradictory fields are for the gateway, which names a misspelt one.
		case "x-kubernetes-list-type", "x-kubernetes-list-map-keys":
			if upstream["x-kubernetes-list-type"] != "map" { // the keys of one are required
				made[key] = value
			}
		default:
			made[key] = value
		}
	}
	if made["type"] == "object" && made["additionalProperties"] == nil {
		made[keepUnknown] = true
	}
	return made
}

func each(properties any, change func(map[string]any) map[string]any) map[string]any {
	made := make(map[string]any)
	all, _ := properties.(map[string]any)
	for name, property := range all {
		made[name] = property
		if below, ok := property.(map[string]any); ok {
			made[name] = change(below)
		}
	}
	return made
}

// maxDescription bounds a description in bytes: kubectl explain shows one for each field.
const maxDescription = 200

// firstSentence returns the first sentence of a description on one line.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	line := strings.Join(strings.Fields(first), " ")
	if sentence, _, more := strings.Cut(line, ". "); more {
		line = sentence + "."
	}
	if len(line) <= maxDescription {
		return line
	}
	cut := strings.LastIndexByte(line[:maxDescription], ' ')
	return strings.ToValidUTF8(line[:max(cut, 0)], "") + " ..."
}

// Editor returns a structural schema as JSON schema: an unknown field is an error, since policies
// are read strictly.
func Editor(structural map[string]any) map[string]any {
	made := make(map[string]any)
	for key, value := range structural {
		switch {
		case strings.HasPrefix(key, "x-kubernetes-"), key == "nullable":
		case key == "properties":
			made[key] = each(value, Editor)
		case key == "items" || key == "additionalProperties":
			made[key] = value
			if below, ok := value.(map[string]any); ok {
				made[key] = Editor(below)
			}
		default:
			made[key] = value
		}
	}
	switch {
	case structural["x-kubernetes-int-or-string"] == true:
		delete(made, "anyOf")
		made["type"] = []any{"integer", "string"}
	case structural["nullable"] == true && made["type"] != nil:
		made["type"] = []any{made["type"], "null"}
	case made["type"] == "object" && len(asMap(made["properties"])) > 0:
		made["additionalProperties"] = false
	}
	return made
}

func asMap(value any) map[string]any {
	all, _ := value.(map[string]any)
	return all
}

package convert

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// detect recognises a format by its documents.
func detect(documents []source.Document) (Format, error) {
	found := map[Format]bool{}
	var last Format
	for _, d := range documents {
		format := formatOf(d)
		if format == "" {
			return "", fmt.Errorf("%sunknown policy format (apiVersion %q, kind %q): set --from to one of %s",
				d.Prefix, d.APIVersion, d.Kind, join(Formats(), ", "))
		}
		found[format], last = true, format
	}
	if len(found) > 1 {
		return "", errors.New("the file holds policies of several formats: convert each alone")
	}
	return last, nil
}

// formatOf detects the format of one document; empty if unknown.
func formatOf(d source.Document) Format {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	switch group {
	case "config.openshift.io":
		return OpenShift
	case "config.ratify.deislabs.io", "config.ratify.sh":
		return Ratify
	case "kyverno.io":
		return Kyverno
	case "policy.sigstore.dev":
		return Sigstore
	case "":
	default:
		return ""
	}
	switch {
	case d.Has("application") || d.Has("validators") && d.Has("policy"):
		return Connaisseur
	case d.Has("trustPolicies"):
		return Notation
	case d.Has("default") || d.Has("transports"):
		return Containers
	}
	return ""
}

func join[T ~string](list []T, between string) string {
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = string(one)
	}
	return strings.Join(texts, between)
}

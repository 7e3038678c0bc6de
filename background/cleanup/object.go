package cleanup

import (
	"strings"
)

// identity is the identity of an object, and the metadata that is read of it.
type identity struct {
	apiVersion, kind, namespace, name, uid string
	labels                                 map[string]string
	leaving                                bool // it is being deleted
}

func identityOf(object map[string]any) identity {
	metadata, _ := object["metadata"].(map[string]any)
	written, _ := metadata["labels"].(map[string]any)
	labels := make(map[string]string, len(written))
	for name := range written {
		labels[name] = textOf(written, name)
	}
	return identity{
		apiVersion: textOf(object, "apiVersion"), kind: textOf(object, "kind"),
		namespace: textOf(metadata, "namespace"), name: textOf(metadata, "name"), uid: textOf(metadata, "uid"),
		labels: labels, leaving: textOf(metadata, "deletionTimestamp") != "",
	}
}

// String returns namespace/name.
func (i identity) String() string { return strings.TrimPrefix(i.namespace+"/"+i.name, "/") }

func textOf(members map[string]any, name string) string {
	text, _ := members[name].(string)
	return text
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func versionOf(apiVersion string) string {
	return apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
}

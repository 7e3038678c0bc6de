package rulecontext

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// maxPath bounds a path of the API server with its query.
const maxPath = 8 << 10

// CheckPath refuses a path of the Kubernetes API server that another parser could read
// differently: one that is not absolute and canonical, or has encoded characters. It refuses
// paths to running workloads, by the server's proxy or into a container. A watch never ends, and
// is refused too. With a namespace the path has to stay in it.
func CheckPath(text, namespace string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("the path %q "+format, append([]any{text}, args...)...)
	}
	if len(text) > maxPath {
		return fmt.Errorf("the path of %d bytes is longer than %d", len(text), maxPath)
	}
	at, query, _ := strings.Cut(text, "?")
	switch {
	case !strings.HasPrefix(at, "/"):
		return bad("is not absolute: want one such as /api/v1/namespaces")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' || r == '#' }):
		return bad("has a backslash, a # or a space in it")
	case strings.Contains(at, "%"):
		return bad("has an encoded character in it: write it as it is")
	case path.Clean(at) != at:
		return bad("is not canonical: it has an empty part, . or .. in it; is a variable empty?")
	}
	asked, err := url.ParseQuery(query)
	if err != nil {
		return bad("has a query that cannot be read: %w", err)
	}
	within, resource := partsOfPath(at)
	switch {
	case len(resource) > 2 && resource[2] == "proxy", len(resource) > 0 && resource[0] == "proxy":
		return bad("leads through the API server's proxy")
	case len(resource) > 2 && slices.Contains([]string{"exec", "attach", "portforward", "log"}, resource[2]):
		return bad("leads into what runs in the cluster, and not to an object")
	case asked.Has("watch") || len(resource) > 0 && resource[0] == "watch":
		return bad("requires a watch, which has no end: request a list")
	case namespace != "" && within != namespace:
		return bad("leads out of namespace %s, in which the Policy is: use a ClusterPolicy", namespace)
	}
	return nil
}

// partsOfPath returns the namespace of a path, empty for none, and the rest of the path:
// resource, name and subresource.
func partsOfPath(at string) (string, []string) {
	parts := strings.Split(strings.TrimPrefix(at, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return "", nil
	}
	if parts[0] != "namespaces" || len(parts) < 2 {
		return "", parts
	}
	return parts[1], parts[2:]
}

package bundle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Object names a ConfigMap or a Secret.
type Object struct{ Namespace, Name string }

func (o Object) String() string { return o.Namespace + "/" + o.Name }

// Defaults are the namespaces for names without one; empty means kyverno and cosign-system.
type Defaults struct{ Kyverno, Sigstore string }

// References are the objects that a policy looks up by name, so that a bundle can include them.
type References struct {
	ConfigMaps, Secrets []Object
	// Gaps describe the other look-ups, and the consequence of their absence.
	Gaps []string
	// AsksUser reports that the policy reads the requesting user.
	AsksUser bool
}

// Find walks a policy's document. A name that the policy computes during evaluation, such as a
// ConfigMap's name from a label, is a gap.
func Find(document map[string]any, defaults Defaults) References {
	defaults.Kyverno, defaults.Sigstore = cmp.Or(defaults.Kyverno, "kyverno"), cmp.Or(defaults.Sigstore, "cosign-system")
	f := finder{defaults: defaults}
	f.walk(document["spec"])
	for _, list := range []*[]Object{&f.found.ConfigMaps, &f.found.Secrets} {
		slices.SortFunc(*list, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
		*list = slices.Compact(*list)
	}
	slices.Sort(f.found.Gaps)
	f.found.Gaps = slices.Compact(f.found.Gaps)
	return f.found
}

type finder struct {
	defaults Defaults
	found    References
}

func (f *finder) gap(format string, args ...any) {
	f.found.Gaps = append(f.found.Gaps, fmt.Sprintf(format, args...))
}

func (f *finder) walk(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			f.member(key, member)
			f.walk(member)
		}
	case []any:
		for _, element := range value {
			f.walk(element)
		}
	case string:
		f.text(value)
	}
}

// member handles the members with a known name.
func (f *finder) member(key string, value any) {
	reference, _ := value.(map[string]any)
	switch key {
	case "configMap":
		f.object(&f.found.ConfigMaps, "ConfigMap", reference, "default")
	case "configMapRef":
		f.object(&f.found.ConfigMaps, "ConfigMap", reference, f.defaults.Sigstore)
	case "secretRef":
		f.object(&f.found.Secrets, "Secret", reference, f.defaults.Sigstore)
	case "secret":
		f.object(&f.found.Secrets, "Secret", reference, f.defaults.Kyverno)
	case "paramRef":
		f.object(&f.found.ConfigMaps, "ConfigMap", reference, "default")
		f.gap("it takes parameters by paramRef: only those of ConfigMaps that are named are carried, and a rule that wants others cannot be evaluated")
	case "apiCall":
		f.gap("it calls an API or a service (apiCall): a rule that wants the answer cannot be evaluated")
	case "secrets":
		if list, _ := value.([]any); len(list) > 0 {
			f.gap("it names credentials for registries: they are not carried, and those of the process that verifies are used, where --resource does not give them")
		}
	case "remote":
		if _, ok := reference["url"]; ok {
			f.gap("a part of it stands at an address: it is read there when it is asked, and offline the policy cannot be evaluated")
		}
	case "subjects", "roles", "clusterRoles":
		f.found.AsksUser = true
	}
}

// object adds a reference.
func (f *finder) object(to *[]Object, kind string, reference map[string]any, namespace string) {
	name, _ := reference["name"].(string)
	if written, _ := reference["namespace"].(string); written != "" {
		namespace = written
	}
	switch {
	case name == "":
	case strings.Contains(name+namespace, "{{"):
		f.gap("it makes up the name of a %s when it is asked (%s/%s): a rule that wants it cannot be evaluated unless --resource gives it", kind, namespace, name)
	default:
		*to = append(*to, Object{namespace, name})
	}
}

var (
	secretKey = regexp.MustCompile(`k8s://([a-z0-9.-]+)/([a-z0-9.-]+)`)
	configMap = regexp.MustCompile(`resource\.Get\(\s*["']v1["']\s*,\s*["']configmaps["']\s*,\s*["']([a-z0-9.-]+)["']\s*,\s*["']([a-z0-9.-]+)["']\s*\)`)
	lookedUp  = regexp.MustCompile(`resource\.(Get|List|Post)\(`)
	called    = regexp.MustCompile(`http\.(Get|Post|Put)\(`)
)

// text handles a string, which may be an expression.
func (f *finder) text(text string) {
	for _, found := range secretKey.FindAllStringSubmatch(text, -1) {
		f.found.Secrets = append(f.found.Secrets, Object{found[1], found[2]})
	}
	named := configMap.FindAllStringSubmatch(text, -1)
	for _, found := range named {
		f.found.ConfigMaps = append(f.found.ConfigMaps, Object{found[1], found[2]})
	}
	if len(lookedUp.FindAllString(text, -1)) > len(named) {
		f.gap("an expression looks objects up (resource.Get, List or Post) that are no ConfigMaps named there: a rule that wants them cannot be evaluated")
	}
	if called.MatchString(text) {
		f.gap("an expression calls a service (http): it is called when the rule is asked, and offline the rule cannot be evaluated")
	}
	if strings.Contains(text, "userInfo") || strings.Contains(text, "serviceAccountName") || strings.Contains(text, "serviceAccountNamespace") {
		f.found.AsksUser = true
	}
}

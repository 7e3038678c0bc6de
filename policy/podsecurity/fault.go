package podsecurity

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/pod-security-admission/policy"
)

// Annotations that preceded today's fields.
const (
	annotations      = "metadata.annotations"
	appArmor         = "container.apparmor.security.beta.kubernetes.io/"
	seccompPod       = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainer = "container.seccomp.security.alpha.kubernetes.io/"
)

// fault is a field that a check does not allow.
type fault struct {
	path    string // spec.containers[0].securityContext.privileged
	starred string // spec.containers[*].securityContext.privileged
	wide    string // another spelling of starred, for annotations
	missing bool   // it is absent, and the check requires it
	values  []string
	printed string // the values as a message has them; may be empty

	container   bool
	name, image string // of the container
}

// finder asks one check about one field after the other.
type finder struct {
	check upstream.CheckPodFn
	meta  *meta.ObjectMeta
	spec  *core.PodSpec
	found []fault
}

// forbids runs the check on a pod with only the given fields; the field that relaxes checks is
// kept.
func (f *finder) forbids(meta *meta.ObjectMeta, spec core.PodSpec) bool {
	spec.OS = f.spec.OS
	return !f.check(meta, &spec).Allowed
}

// inPod adds a fault if a pod with nothing but spec is forbidden.
func (f *finder) inPod(path string, spec core.PodSpec, values any) {
	if f.forbids(&meta.ObjectMeta{}, spec) {
		f.found = append(f.found, fault{path: path, starred: star(path)}.with(values))
	}
}

// podContext is inPod for a field of the pod's security context.
func (f *finder) podContext(field string, context core.PodSecurityContext, values any) {
	f.inPod("spec.securityContext."+field, core.PodSpec{SecurityContext: &context}, values)
}

// annotation adds a fault if the annotation alone is forbidden.
func (f *finder) annotation(key, prefix string) {
	value, ok := f.meta.Annotations[key]
	if !ok || !f.forbids(&meta.ObjectMeta{Annotations: map[string]string{key: value}},
		core.PodSpec{Containers: []core.Container{{Name: strings.TrimPrefix(key, prefix)}}}) {
		return
	}
	starred := annotations + "[" + key + "]"
	if prefix != "" {
		starred = annotations + "[" + prefix + "*]"
	}
	f.found = append(f.found, fault{path: annotations + "[" + key + "]", starred: starred, wide: annotations}.with(value))
}

// place is a container and where it stands.
type place struct {
	*core.Container
	path string
}

// places returns the containers of the pod, in the order of Kubernetes' checks.
func (f *finder) places() []place {
	var list []place
	at := func(kind string, i int, c *core.Container) {
		list = append(list, place{c, "spec." + kind + "[" + strconv.Itoa(i) + "]."})
	}
	for i := range f.spec.InitContainers {
		at("initContainers", i, &f.spec.InitContainers[i])
	}
	for i := range f.spec.Containers {
		at("containers", i, &f.spec.Containers[i])
	}
	for i := range f.spec.EphemeralContainers {
		at("ephemeralContainers", i, (*core.Container)(&f.spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return list
}

// context returns the container's security context, empty if it has none.
func (p place) context() core.SecurityContext {
	if p.SecurityContext == nil {
		return core.SecurityContext{}
	}
	return *p.SecurityContext
}

// inContainer adds a fault of a container that the check forbids when it has
// nothing else. Values nil: the field is missing.
func (f *finder) inContainer(p place, field string, alone core.Container, pod *core.PodSecurityContext, values any) {
	alone.Name = p.Name
	if !f.forbids(&meta.ObjectMeta{}, core.PodSpec{SecurityContext: pod, Containers: []core.Container{alone}}) {
		return
	}
	path := p.path + field
	f.found = append(f.found, fault{path: path, starred: star(path), container: true, name: p.Name, image: p.Image}.with(values))
}

// ofContext is inContainer for a field of the security context.
func (f *finder) ofContext(p place, field string, context core.SecurityContext, values any) {
	f.inContainer(p, "securityContext."+field, core.Container{SecurityContext: &context}, nil, values)
}

// with sets the forbidden values: a text, a list of them, a number, a bool, or
// nil for a field that is missing.
func (f fault) with(values any) fault {
	switch v := values.(type) {
	case nil:
		f.missing = true
	case []string:
		v = slices.Compact(slices.Sorted(slices.Values(v)))
		f.values, f.printed = v, fmt.Sprint(v)
	default:
		if text := fmt.Sprint(v); text != "" {
			f.values, f.printed = []string{text}, text
		}
	}
	return f
}

// String is the fault as Kyverno's message has it; the path follows prefix.
func (f fault) text(prefix string) string {
	switch {
	case f.missing:
		return prefix + f.path + ": Required value"
	case f.printed == "":
		return prefix + f.path + ": Forbidden"
	}
	return prefix + f.path + " is forbidden, forbidden values found: " + f.printed
}

// star puts a star in place of each index.
func star(path string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(path, "[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, path, _ = strings.Cut(rest, "]")
		b.WriteString("[*]")
	}
}

// sources are the kinds of volumes, by their name in JSON.
func sources() []string {
	t := reflect.TypeFor[core.VolumeSource]()
	list := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		list = append(list, name)
	}
	return list
}

// source returns the kind of a volume; unknown if Kubernetes 1.37 has no such kind.
func source(v core.VolumeSource) string {
	value := reflect.ValueOf(v)
	for i, name := range sources() {
		if !value.Field(i).IsNil() {
			return name
		}
	}
	return unknownSource
}

const unknownSource = "unknown"

// volumeFields are the fields that the control of volume types may exclude.
func volumeFields() []string {
	list := []string{"spec.volumes[*]." + unknownSource}
	for _, name := range sources() {
		list = append(list, "spec.volumes[*]."+name)
	}
	return list
}

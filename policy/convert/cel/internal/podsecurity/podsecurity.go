package podsecurity

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/pod-security-admission/api"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// Document is validate.podSecurity as it is written.
type Document struct {
	Level   string                  `json:"level"`
	Version string                  `json:"version"`
	Exclude []podsecurity.Exclusion `json:"exclude"`
}

// Options describe the pod in an object.
type Options struct {
	// Pod is the path of the pod, or of its template: object, or object.spec.template.
	Pod string
	// Containers is the name of the variable with all containers.
	Containers string
}

// Standard is a standard in CEL.
type Standard struct {
	// Containers is the variable that the validations read.
	Containers admission.Variable
	// Validations are the checks, in the order of the standards.
	Validations []admission.Validation
}

// Write writes a standard that the engine compiled. A construct without a form is a *source.Unsupported with
// the path below podSecurity.
func Write(doc Document, options Options) (Standard, error) {
	spec := options.Pod + ".spec"
	made := Standard{Containers: admission.Variable{Name: options.Containers, Expression: spec + ".containers +\n" +
		spec + ".?initContainers.orValue([]) +\n" + spec + ".?ephemeralContainers.orValue([])"}}
	level, err := api.ParseLevel(doc.Level)
	if err != nil || level == api.LevelPrivileged {
		return made, &source.Unsupported{Path: "level", Found: "a level that restricts nothing"}
	}
	version := api.LatestVersion()
	if doc.Version != "" {
		version, err = api.ParseVersion(doc.Version)
		if err != nil {
			return made, &source.Unsupported{Path: "version", Found: err.Error()}
		}
	}
	for i, e := range doc.Exclude {
		if strings.HasSuffix(e.RestrictedField, ".unknown") {
			return made, &source.Unsupported{Path: source.Index("exclude", i) + ".restrictedField", Found: "volumes of a type that is not known"}
		}
	}
	for _, c := range checks(version) {
		if level == api.LevelBaseline && c.level == api.LevelRestricted {
			continue
		}
		w := writer{Options: options, exclude: slices.DeleteFunc(slices.Clone(doc.Exclude), func(e podsecurity.Exclusion) bool { return e.ControlName != c.control })}
		expression := w.check(c)
		if expression == "" {
			continue // all of it is excluded
		}
		made.Validations = append(made.Validations, admission.Validation{
			Expression: strings.NewReplacer("\x01S", spec, "\x01M", options.Pod+".metadata", "\x01C", options.Containers).Replace(expression), Message: c.message,
		})
	}
	if len(made.Validations) == 0 {
		return made, &source.Unsupported{Path: "exclude", Found: "everything of the level"}
	}
	return made, nil
}

// writer writes the checks of one control.
type writer struct {
	Options
	exclude []podsecurity.Exclusion
}

// check writes a check; empty if all of it is excluded.
func (w *writer) check(c check) string {
	parts := w.pod(c)
	if all := w.containers(c); all != "" {
		parts = append(parts, all)
	}
	if len(parts) == 0 {
		return ""
	}
	expression := celtext.Join(parts, " && ")
	if c.windows {
		return "\x01S.?os.?name.orValue('') == 'windows' || " + celtext.Operand(expression)
	}
	return expression
}

// pod writes the fields of the pod; none if the control is excluded for the pod as a whole.
func (w *writer) pod(c check) []string {
	if slices.ContainsFunc(w.exclude, func(e podsecurity.Exclusion) bool { return len(e.Images) == 0 && e.RestrictedField == "" }) {
		return nil
	}
	var parts []string
	for _, f := range c.pod {
		var excluded []string
		for _, e := range w.exclude {
			if len(e.Images) > 0 || !f.isNamed(e.RestrictedField) {
				continue
			}
			excluded = append(excluded, f.excluded(e))
		}
		if one := f.write(excluded); one != "" {
			parts = append(parts, one)
		}
	}
	return parts
}

// isNamed reports whether an exclusion names the field; of annotations also by the field of all.
func (f *fault) isNamed(restricted string) bool {
	if f.kinds {
		return strings.HasPrefix(restricted, f.field)
	}
	return restricted == f.field || restricted == notes && strings.HasPrefix(f.field, notes)
}

const always = "true"

// excluded writes that an exclusion of the field has the values of a fault: true if it has any.
func (f *fault) excluded(e podsecurity.Exclusion) string {
	matches := func(value string) string {
		if slices.Contains(e.Values, "*") {
			return always
		}
		return celtext.Any(value, e.Values)
	}
	switch {
	case f.kinds:
		return "has(volume." + e.RestrictedField[strings.LastIndex(e.RestrictedField, ".")+1:] + ")"
	case f.fixed != "" && wildcard.Any(e.Values, f.fixed):
		return always
	case f.fixed != "":
		return ""
	case f.value != "":
		match := matches(f.value)
		if f.empty && match != always {
			return f.value + " == '' || " + match
		}
		return match
	case f.values != "":
		if matches("value") == always {
			return always
		}
		return f.values + ".all(value, " + matches("value") + ")"
	}
	return always // nothing is there, so that any values exclude it
}

// write writes that a field is not forbidden, or that one of the exclusions holds; empty if one always does.
func (f *fault) write(excluded []string) string {
	if slices.Contains(excluded, always) {
		return ""
	}
	excluded = slices.DeleteFunc(excluded, func(e string) bool { return e == "" })
	one := celtext.Join(append([]string{f.good}, excluded...), " || ")
	if f.of != "" {
		return f.of + ".all(" + f.name + ", " + one + ")"
	}
	return one
}

// containers writes the fields of containers. Exclusions of a field are of one list of containers.
func (w *writer) containers(c check) string {
	if len(c.containers) == 0 {
		return ""
	}
	lists := []string{"containers", "initContainers", "ephemeralContainers"}
	var each []string
	for _, list := range lists {
		each = append(each, w.container(c, list))
	}
	if each[0] == each[1] && each[1] == each[2] {
		if each[0] == "" {
			return ""
		}
		return "variables.\x01C.all(container, " + each[0] + ")"
	}
	var parts []string
	for i, list := range lists {
		if each[i] != "" {
			parts = append(parts, "\x01S.?"+list+".orValue([]).all(container, "+each[i]+")")
		}
	}
	return celtext.Join(parts, " && ")
}

// container writes the fields of a container of a list; empty if all are excluded.
func (w *writer) container(c check, list string) string {
	var images []string
	for _, e := range w.exclude {
		if e.RestrictedField == "" {
			images = append(images, e.Images...)
		}
	}
	if slices.Contains(images, "*") {
		return ""
	}
	const image = "container.?image.orValue('')"
	only := !slices.ContainsFunc(w.exclude, func(e podsecurity.Exclusion) bool { return len(e.Images) == 0 || e.RestrictedField != "" })
	var parts []string
	if only && c.short != "" {
		parts = []string{c.short}
	} else {
		for _, f := range c.containers {
			var excluded []string
			for _, e := range w.exclude {
				if e.RestrictedField != "spec."+list+"[*]."+f.field {
					continue
				}
				values := f.excluded(e)
				if values != "" && !slices.Contains(e.Images, "*") {
					values = celtext.And(slices.DeleteFunc([]string{celtext.Any(image, e.Images), values}, func(s string) bool { return s == always }))
				}
				excluded = append(excluded, values)
			}
			if one := f.write(excluded); one != "" {
				parts = append(parts, one)
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	all := celtext.And(parts)
	if len(images) == 0 {
		return all
	}
	return celtext.Any(image, images) + " || " + celtext.Operand(all)
}

package podsecurity

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/pod-security-admission/api"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

const (
	// maxExclusions bounds the exclusions of one rule or exception: each is
	// compared with each field that violates.
	maxExclusions = 200
	// maxPatterns bounds the images and the values of an exclusion.
	maxPatterns = 500
)

// FieldError reports an invalid field of a document with its path.
type FieldError = field.Error

// Exclusion is an entry of validate.podSecurity.exclude, or of the podSecurity
// of a PolicyException, as it is written.
type Exclusion struct {
	// ControlName is one of the standards' controls, as Kyverno spells them.
	ControlName string `json:"controlName"`
	// Images are patterns of images as they are written in containers. Without
	// them, fields of the pod are excluded and none of a container.
	Images []string `json:"images,omitempty"`
	// RestrictedField is the one field that is excluded; every one of the
	// control if empty.
	RestrictedField string `json:"restrictedField,omitempty"`
	// Values are patterns that everything forbidden in the field must match. A
	// field that is missing has no value, and is excluded by any.
	Values []string `json:"values,omitempty"`
}

// Exclusions are compiled exclusions. They are immutable.
type Exclusions struct{ list []exclusion }

type exclusion struct {
	checks []string
	Exclusion
}

// CompileExclusions compiles the exclusions of an exception, which has no level. Path is
// the list's, for errors.
func CompileExclusions(list []Exclusion, path string) (*Exclusions, error) {
	if list != nil && len(list) == 0 {
		return nil, field.Fail(path, "is empty, and the exception would cover its rules as a whole: name controls, or leave the field out")
	}
	return compileExclusions(list, path, api.LevelRestricted)
}

func compileExclusions(list []Exclusion, path string, level api.Level) (*Exclusions, error) {
	if len(list) > maxExclusions {
		return nil, field.Fail(path, "%d exclusions are more than %d", len(list), maxExclusions)
	}
	var (
		compiled Exclusions
		errs     []error
	)
	for i, written := range list {
		c, err := written.control(path+"["+strconv.Itoa(i)+"]", level)
		errs = append(errs, err)
		compiled.list = append(compiled.list, exclusion{checks: c.checks, Exclusion: written})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &compiled, nil
}

// control finds the control of an exclusion and checks that the exclusion can
// ever apply.
func (e Exclusion) control(path string, level api.Level) (control, error) {
	c, ok := named(e.ControlName)
	switch {
	case !ok:
		return control{}, field.Fail(path+".controlName", "%q is no control of the Pod Security Standards: want one of %s", e.ControlName, names(api.LevelRestricted))
	case level == api.LevelBaseline && c.level == api.LevelRestricted:
		return control{}, field.Fail(path+".controlName", "%q is no control of the level baseline: want one of %s", e.ControlName, names(level))
	case c.scope == containers && len(e.Images) == 0:
		return control{}, field.Fail(path+".images", "%q is about containers: say for which images it is excluded", e.ControlName)
	case c.scope == inPod && len(e.Images) > 0:
		return control{}, field.Fail(path+".images", "%q is about the pod as a whole: it cannot be excluded for images", e.ControlName)
	case e.RestrictedField != "" && len(e.Values) == 0:
		return control{}, field.Fail(path+".values", "is empty: say which values of %s are excluded", e.RestrictedField)
	case e.RestrictedField == "" && len(e.Values) > 0:
		return control{}, field.Fail(path+".restrictedField", "is empty: say which field the values are of")
	case len(e.Images) > maxPatterns || len(e.Values) > maxPatterns:
		return control{}, field.Fail(path, "more than %d images or values", maxPatterns)
	case e.RestrictedField == "":
		return c, nil
	}
	fields := c.spelled()
	if !slices.Contains(fields, e.RestrictedField) {
		return control{}, field.Fail(path+".restrictedField", "%q is no field of %q: want one of %s", e.RestrictedField, e.ControlName, strings.Join(fields, ", "))
	}
	if inContainers := strings.Contains(e.RestrictedField, "ontainers[*]."); inContainers != (len(e.Images) > 0) {
		return control{}, field.Fail(path+".images", "%s", mismatch(inContainers, e.RestrictedField))
	}
	return c, nil
}

// mismatch returns why an exclusion of a field would never apply.
func mismatch(inContainers bool, restricted string) string {
	if inContainers {
		return fmt.Sprintf("is empty, and %s is a field of containers: say of which images", restricted)
	}
	return fmt.Sprintf("is given, and %s is a field of the pod, which has no image", restricted)
}

// covers reports whether a field that violates a check is excluded.
func (e exclusion) covers(check string, f fault) bool {
	if !slices.Contains(e.checks, check) {
		return false
	}
	if f.container == (len(e.Images) == 0) || f.container && !wildcard.Any(e.Images, f.image) {
		return false
	}
	if e.RestrictedField == "" {
		return true
	}
	if e.RestrictedField != f.starred && e.RestrictedField != f.wide {
		return false
	}
	return !slices.ContainsFunc(f.values, func(value string) bool { return !wildcard.Any(e.Values, value) })
}

// ofPodAlone reports whether a check is excluded for the pod's own fields, and for those of no container.
func (e exclusion) ofPodAlone(check string) bool {
	return len(e.Images) == 0 && e.RestrictedField == "" && slices.Contains(e.checks, check)
}

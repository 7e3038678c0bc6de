package podsecurity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// Result lists a pod's violations of a standard.
type Result struct {
	// Level and Version are the standard's, as the policy writes them.
	Level, Version string
	// Violations are in the order of Kubernetes' checks; none: the standard is met.
	Violations []Violation
}

// Violation is a check that does not allow a pod.
type Violation struct {
	// ID is Kubernetes' name of the check, Control the one that policies use.
	ID, Control string
	// Reason and Detail are Kubernetes' words.
	Reason, Detail string

	path   string
	faults []fault
	// needsImages: an exclusion names the control without images, and fields of containers are left.
	needsImages bool
}

// Met reports whether the standard is met.
func (r Result) Met() bool { return len(r.Violations) == 0 }

// Fields are the fields that the violation is about, from the root of the object.
func (v Violation) Fields() []string {
	list := make([]string, len(v.faults))
	for i, f := range v.faults {
		list[i] = v.path + f.path
	}
	return list
}

// Images are the images of the containers that the violation is about, each once,
// in full; a reference that is none is given as it is written.
func (v Violation) Images() []string {
	var list []string
	for _, f := range v.faults {
		if !f.container {
			continue
		}
		written := f.image
		if ref, err := image.Parse(written); err == nil {
			written = ref.String()
		}
		if !slices.Contains(list, written) {
			list = append(list, written)
		}
	}
	return list
}

// String is the violation as Kyverno's message has it.
func (v Violation) String() string {
	list := make([]string, len(v.faults))
	for i, f := range v.faults {
		list[i] = f.text(v.path)
	}
	return fmt.Sprintf("(Forbidden reason: %s, field error list: [%s])", v.Reason, strings.Join(list, ", "))
}

// Message is Kyverno's message for a rule that fails or passes, with hints about exclusions.
func (r Result) Message(rule string) string {
	if r.Met() {
		return fmt.Sprintf("Validation rule '%s' passed.", rule)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Validation rule '%s' failed. It violates PodSecurity \"%s:%s\": ", rule, r.Level, r.Version)
	for _, v := range r.Violations {
		b.WriteString(v.String())
	}
	for _, v := range r.Violations {
		if v.needsImages {
			fmt.Fprintf(&b, "; an exclusion of %q without images is of the pod's own fields: add an entry with images for containers", v.Control)
		}
	}
	return b.String()
}

// Properties are a report's properties of the violations, in addition to the message; nil
// if there are none.
func (r Result) Properties() map[string]string {
	if r.Met() {
		return nil
	}
	type control struct {
		ID, Name string
		Images   []string
	}
	var (
		ids  []string
		list []control
	)
	for _, v := range r.Violations {
		ids = append(ids, v.ID)
		list = append(list, control{v.ID, v.Control, v.Images()})
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil // texts alone: cannot be
	}
	return map[string]string{"standard": r.Level, "version": r.Version, "controls": strings.Join(ids, ","), "controlsJSON": string(text)}
}

package kyvernocel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Options are the optional dependencies of every compiler. A policy that needs a missing one is
// indeterminate.
type Options struct {
	// Outside implements the libraries of its members' names. It is called within requests.
	Outside cel.Outside
	// Kinds lists the kinds of the cluster in addition to Kubernetes' own. With nil, a policy
	// that names others is refused. With constraint.Later it is accepted, and matches none of
	// them until they are served.
	Kinds constraint.Resources
	// Now is the clock of time.now, and Random the source of random.
	Now    func() time.Time
	Random io.Reader
}

// Inputs are the inputs that every evaluation for a policy of a namespace has.
func (o Options) Inputs(namespace string) cel.Inputs {
	return cel.Inputs{Namespace: namespace, Now: o.Now, Random: o.Random, Outside: o.Outside}
}

// FieldError is a fault of a document with its path.
type FieldError = field.Error

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// policyDocument is a policy as it is written, with a specification of its kind.
type policyDocument[S any] struct {
	Head
	Spec   S               `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

// Compile compiles one document of a cluster-wide kind or its namespaced form, YAML or JSON. Source
// is where it was read; build adds the specification to the policy. Errors refer to fields, with
// their paths, all of them joined; a policy with an error never becomes active in part.
func Compile[S any](text []byte, kind, source string, build func(spec *S, out *policy.Policy) error) (*policy.Policy, error) {
	out, err := compile(text, kind, source, build)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	return out, nil
}

func compile[S any](text []byte, kind, source string, build func(spec *S, out *policy.Policy) error) (*policy.Policy, error) {
	var d policyDocument[S]
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	out, err := d.NewPolicy(data, kind, source)
	if err != nil {
		return nil, err
	}
	if err := build(&d.Spec, out); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, out.Name, err)
	}
	return out, nil
}

// CompileMatch compiles spec.matchConstraints of a policy. AdmissionRequests means that such requests
// evaluate the policy, so that a kind without any is an error.
func (o Options) CompileMatch(doc *admission.MatchResources, out *policy.Policy, admissionRequests bool) (*constraint.Constraint, error) {
	const path = "spec.matchConstraints"
	match, err := constraint.Compile(doc, path, o.Kinds)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(match.CheckKinds(path, admissionRequests), match.InNamespace(out.Namespace, path)); err != nil {
		return nil, err
	}
	out.Unserved = match.Unserved()
	return match, nil
}

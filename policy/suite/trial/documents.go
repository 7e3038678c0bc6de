package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Documents are the texts of a trial, in YAML or JSON.
type Documents struct {
	// Policies are next to the objects that they look up.
	Policies string `json:"policies"`
	// Objects are evaluated, each as if it were created.
	Objects string `json:"objects"`
	// Parameters are the Values that replace look-ups and fields of the request, and the UserInfo of the
	// requesting user (cli.kyverno.io/v1alpha1); empty for none.
	Parameters string `json:"parameters"`
	// Exceptions are PolicyExceptions; empty for none.
	Exceptions string `json:"exceptions"`
}

// Bounds of Documents: a page has few, and each object is evaluated against each policy.
const (
	// MaxPolicies bounds the documents next to policies, and those of exceptions.
	MaxPolicies = 100
	// MaxObjects bounds the evaluated objects.
	MaxObjects = 200
	// maxParameters bounds the documents of parameters, of which there are two kinds.
	maxParameters = 2
)

// TooManyError means that there are more documents than a bound allows.
type TooManyError struct {
	// In is the name of the field of Documents, in JSON.
	In             string
	Found, Allowed int
}

// Error implements error.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s: %d documents; at most %d are evaluated at once", e.In, e.Found, e.Allowed)
}

// Offline evaluates Documents and opens no connection and no file. It is safe for concurrent use.
type Offline struct {
	setup  Setup
	advice Advice
}

// NewOffline makes an Offline. The timeout bounds the evaluation of one object.
func NewOffline(timeout time.Duration) (*Offline, error) {
	const why = "images are not read here: registries are asked at admission alone"
	store, err := trust.New(trust.Options{Secrets: engine.NewResources()})
	if err != nil {
		return nil, err
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		return nil, err
	}
	return &Offline{
		setup: Setup{Registries: Nowhere{Why: why}, Prover: prover, Offline: true, Timeout: timeout},
		advice: Advice{Missing: "no document has it", Object: "add it to the objects, or next to the policies",
			Value: "set the value that the rule reads in the parameters"},
	}, nil
}

// Evaluate evaluates documents. Those that cannot be read are Errors of the report. The error is a
// *TooManyError, that of the context, or one of the evaluation itself.
func (o *Offline) Evaluate(ctx context.Context, d Documents) (Report, error) {
	report := Report{Objects: []Object{}, Summary: map[string]int{}}
	for _, result := range []string{evaluation.Pass, evaluation.Fail, evaluation.Warn, evaluation.Error, evaluation.Skip} {
		report.Summary[result] = 0
	}
	in := NewInput(o.advice)
	setup := o.setup
	setup.Warn = func(message string) { report.Warnings = append(report.Warnings, message) }
	if err := in.read(d, &setup); err != nil {
		return report.refused(err)
	}
	evaluator, err := in.compile(ctx, setup)
	for _, unread := range in.Unread {
		report.fault("policies", unread)
	}
	switch {
	case err != nil && len(in.Unread) == 0:
		return report.refused(err)
	case err != nil:
		return report, nil //nolint:nilerr // the errors of the policies are in the report
	}
	report.Warnings = append(report.Warnings, in.Warnings...)
	answers, _ := evaluator.EvaluateEvery(ctx, in.Objects)
	if err := ctx.Err(); err != nil {
		return report, err
	}
	matched := false
	for i := range answers {
		matched = matched || len(answers[i].Rules) > 0 || answers[i].Err != nil
		if err := report.add(in, evaluator.Policies(), in.Objects[i], &answers[i]); err != nil {
			return report, err
		}
	}
	if !matched && len(answers) > 0 {
		report.Warnings = append(report.Warnings, "no rule matches any object: check the kinds, names and namespaces in the policies")
	}
	return report, nil
}

// faultError is about one of the Documents.
type faultError struct {
	in  string
	err error
}

// Error implements error.
func (e *faultError) Error() string { return e.in + ": " + e.err.Error() }

// Unwrap implements errors.
func (e *faultError) Unwrap() error { return e.err }

func (r *Report) fault(in string, err error) {
	r.Errors = append(r.Errors, Fault{In: in, Message: limit.Text(err.Error(), maxMessage)})
}

// refused adds an error about documents to the report, and returns any other.
func (r *Report) refused(err error) (Report, error) {
	fault, ok := errors.AsType[*faultError](err)
	if !ok {
		return *r, err
	}
	r.fault(fault.in, fault.err)
	return *r, nil
}

// read reads the documents.
func (r *Input) read(d Documents, with *Setup) error {
	policies, err := parse("policies", d.Policies, MaxPolicies, workload.Read)
	if err != nil {
		return err
	}
	for _, object := range policies {
		if err := r.AddPolicy(object); err != nil {
			return &faultError{"policies", err}
		}
	}
	if err := r.CheckDefinitions(); err != nil {
		return &faultError{"policies", err}
	}
	exceptions, err := parse("exceptions", d.Exceptions, MaxPolicies, workload.Read)
	if err != nil {
		return err
	}
	r.Exceptions = append(r.Exceptions, exceptions...)
	objects, err := parse("objects", d.Objects, MaxObjects, workload.Read)
	if err != nil {
		return err
	}
	for i := range objects {
		objects[i] = stored.Object(objects[i])
	}
	err = r.SetObjects(objects, "")
	if err == nil {
		err = r.KnowObjects()
	}
	if err != nil {
		return &faultError{"objects", err}
	}
	switch {
	case len(r.Policies) == 0:
		return &faultError{"policies", errors.New("no policy in it")}
	case len(r.Objects) == 0:
		return &faultError{"objects", errors.New("no objects in it")}
	}
	return parameters(d.Parameters, with)
}

// isEmpty reports whether a text has comments at most.
func isEmpty(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && line[0] != '#' {
			return false
		}
	}
	return true
}

// parse parses one of the texts; an empty one has no documents.
func parse(in, text string, most int, read func(r io.Reader, name string) ([]workload.Object, error)) ([]workload.Object, error) {
	if isEmpty(text) {
		return nil, nil
	}
	objects, err := read(strings.NewReader(text), in)
	switch {
	case err != nil:
		return nil, &faultError{in, err}
	case len(objects) > most:
		return nil, &TooManyError{In: in, Found: len(objects), Allowed: most}
	}
	return objects, nil
}

// parameters reads the values and the user.
func parameters(text string, with *Setup) error {
	const in = "parameters"
	documents, err := parse(in, text, maxParameters, workload.ReadDocuments)
	if err != nil {
		return err
	}
	for _, document := range documents {
		kind, _ := document.Content()["kind"].(string)
		switch {
		case kind == "UserInfo" && with.User == nil:
			user, err := fixtures.DecodeUser(document.JSON(), in)
			if err != nil {
				return &faultError{in, err}
			}
			with.User = &user
		case kind != "UserInfo" && with.Values == nil:
			with.Values, err = fixtures.DecodeValues(document.JSON(), in)
			if err != nil {
				return &faultError{in, err}
			}
		default:
			return &faultError{in, errors.New("two documents of one kind: want one of kind Values, and one of kind UserInfo")}
		}
	}
	return nil
}

// compile compiles the policies, with the objects as those that rules may look up and change.
func (r *Input) compile(ctx context.Context, with Setup) (*evaluation.Evaluator, error) {
	options, config := r.Options(with)
	config.Existing.Targets = slices.Concat(r.Objects, evaluation.InNamespace(r.beside, "default", r.kinds))
	held, err := r.HoldGlobals(ctx, nil)
	if err != nil {
		return nil, &faultError{"policies", err}
	}
	options.Globals = engine.Globals{Expressions: globalcontext.Expressions{Store: held}}
	evaluator, err := r.Compile(ctx, options, config, func(what string, err error) {
		r.Warnings = append(r.Warnings, what+": "+err.Error())
	})
	if err != nil && len(r.Unread) == 0 {
		in := ""
		switch { // the error names its document, too
		case len(r.Roots) == 0:
			in = "exceptions"
		case len(r.Exceptions) == 0:
			in = "policies"
		}
		return nil, &faultError{in, err}
	}
	return evaluator, err
}

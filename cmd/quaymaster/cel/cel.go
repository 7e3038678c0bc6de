// Package cel is the command quaymaster cel: CEL expressions of policies, evaluated outside of a policy. It
// implements the language of ValidatingPolicies (policies.kyverno.io/v1, Kyverno 1.19).
package cel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/report"
)

// field is the place of the expression in messages.
const field = "expression"

// flags name the data of an expression.
type flags struct {
	object, oldObject string // files
	variables         []string
	format            string
	timeout           time.Duration
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "cel EXPRESSION", Short: "Evaluate a CEL expression of a policy",
		Long: `Evaluate a CEL expression as ValidatingPolicies have them, with Kyverno's functions
and the bounds that hold at admission; see docs/expressions.md. The object of -f,
YAML or JSON, is created, or updated where --old-object is its former state; with
--old-object alone it is deleted.

The value is printed, and its type and cost. What is not in files, such as the user,
other objects and images, is unknown.

Exit status: 0 if the expression has a value, 3 if it could not be evaluated, 2 for
wrong use and for an expression that does not compile.`,
		Example: `  quaymaster cel 'object.spec.replicas > 1' -f deployment.yaml
  quaymaster cel 'object.spec.replicas >= oldObject.spec.replicas' -f new.yaml --old-object old.yaml
  quaymaster cel 'variables.images.all(i, i.contains("@"))' -f pod.yaml --variable 'images=object.spec.containers.map(c, c.image)'`,
		Args: usage.Arguments("an expression", 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), t, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.object, "filename", "f", "", "`file` with the object, or - for standard input")
	flags.StringVar(&f.oldObject, "old-object", "", "`file` with the object before an update or a deletion")
	usage.CompleteFiles(cmd, "filename", usage.Documents()...)
	usage.CompleteFiles(cmd, "old-object", usage.Documents()...)
	flags.StringArrayVar(&f.variables, "variable", nil, "`NAME=EXPRESSION` of variables.NAME; may be repeated, and read earlier ones")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Second, "time to evaluate")
	output.RegisterDocument(cmd, "output", &f.format)
	return cmd
}

// result is an evaluated expression, as JSON output has it.
type result struct {
	Value any    `json:"value"`
	Type  string `json:"type"`
	// Cost is that of the expression and its variables.
	Cost uint64 `json:"cost"`
}

func (f *flags) run(ctx context.Context, t command.Terminal, expression string) error {
	if err := output.CheckDocument(f.format); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return fmt.Errorf("--timeout %s must be positive", f.timeout)
	}
	scope, err := f.scope()
	if err != nil {
		return err
	}
	program, err := scope.Compile(field, expression)
	if err != nil {
		return err
	}
	subject, err := f.subject(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	inputs := kyvernocel.Options{Now: time.Now, Random: rand.Reader}.Inputs("")
	inputs.More = &kyvernocel.Seen{Subject: subject}
	activation := scope.NewActivation(inputs)
	value, err := program.Eval(ctx, activation)
	var found result
	if err == nil {
		found, err = describe(value, activation)
	}
	if err != nil {
		fmt.Fprintf(t.Err, "quaymaster: %s\n", report.Escape(err.Error()))
		return command.Status(command.ExitError)
	}
	return f.write(t, found)
}

func describe(value ref.Val, activation *cel.Activation) (result, error) {
	native, err := cel.Native(value)
	if err != nil {
		return result{}, fmt.Errorf("the value of type %s has no JSON: %w", value.Type().TypeName(), err)
	}
	return result{Value: native, Type: value.Type().TypeName(), Cost: activation.Cost()}, nil
}

// scope has the variables of --variable.
func (f *flags) scope() (*cel.Scope, error) {
	options := kyvernocel.Reach(false)
	options.Variables = kyvernocel.OfObject()
	env, err := cel.NewEnv(options)
	if err != nil {
		return nil, err
	}
	scope, err := env.NewScope()
	if err != nil {
		return nil, err
	}
	for _, variable := range f.variables {
		name, expression, found := strings.Cut(variable, "=")
		if !found {
			return nil, fmt.Errorf("--variable %s: want NAME=EXPRESSION", variable)
		}
		if err := scope.Declare("--variable "+name, name, expression); err != nil {
			return nil, err
		}
	}
	return scope, nil
}

// subject is the request that the files describe.
func (f *flags) subject(t command.Terminal) (*policy.Subject, error) {
	if f.object == "-" && f.oldObject == "-" {
		return nil, errors.New("standard input can be read once: give - once")
	}
	object, err := read(t, "-f", f.object)
	if err != nil {
		return nil, err
	}
	old, err := read(t, "--old-object", f.oldObject)
	if err != nil {
		return nil, err
	}
	s := &policy.Subject{Operation: "CREATE", Object: policy.ContentOf(object), OldObject: policy.ContentOf(old), Time: time.Now()}
	identity := object
	switch {
	case object == nil && old != nil:
		s.Operation, identity = "DELETE", old
	case old != nil:
		s.Operation = "UPDATE"
	}
	apiVersion, _ := identity["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("apiVersion %q: want VERSION or GROUP/VERSION, as in apps/v1", apiVersion)
	}
	s.Group, s.Version = version.Group, version.Version
	s.Kind, _ = identity["kind"].(string)
	metadata, _ := identity["metadata"].(map[string]any)
	s.Name, _ = metadata["name"].(string)
	s.Namespace, _ = metadata["namespace"].(string)
	return s, nil
}

// read reads the object of a flag; nil without a file.
func read(t command.Terminal, flag, file string) (map[string]any, error) {
	if file == "" {
		return nil, nil
	}
	data, err := command.ReadDocument(t, flag, file)
	if err != nil {
		return nil, err
	}
	object, ok := data.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s %s: want an object", flag, file)
	}
	return object, nil
}

func (f *flags) write(t command.Terminal, found result) error {
	if f.format != output.Text {
		return output.WriteDocument(t.Out, f.format, found)
	}
	text, isText := found.Value.(string)
	if !isText {
		encoded, err := json.Marshal(found.Value)
		if err != nil {
			return fmt.Errorf("print the value: %w", err)
		}
		text = string(encoded)
	}
	_, err := fmt.Fprintf(t.Out, "%s\n\n%s, cost %d\n", report.Escape(text), found.Type, found.Cost)
	return err
}

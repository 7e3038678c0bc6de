package cel

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// Options are the libraries, variables and functions of a dialect. The zero value has the
// libraries that need no external data, and no variables.
type Options struct {
	// Variables are declared here and their values supplied by each Activation. The name
	// variables is reserved: it holds the declarations of Scope.Declare.
	Variables []Variable
	// Functions are those that each Activation implements, such as
	// verifyImageSignatures.
	Functions []Function
	// Resource, HTTP, GlobalContext and ImageData declare the variables resource,
	// http, globalContext and image with their functions.
	Resource, HTTP, GlobalContext, ImageData bool
	// Authorizer declares the variables authorizer and authorizer.requestResource. Their values are
	// an authorizer.Requester; Outside.Resources posts the reviews.
	Authorizer bool
	// Namespaced: the functions of resource take no namespace, and use that of the policy, which
	// the Activation names.
	Namespaced bool
	// RequestObjects: request.object and request.oldObject are object and oldObject. RequestPrefix is before
	// the names of these variables, for expressions about another object than that of the request.
	RequestObjects bool
	RequestPrefix  string
	// Patches: expressions may make Object{...} and JSONPatch{...}.
	Patches bool
	// Kubernetes: the language is that of Kubernetes alone, without the libraries of Kyverno, a clock
	// and random texts.
	Kubernetes bool
	Mixed      bool // the values of a map or a list that is written may be of several types
}

// Variable is a name that expressions may read.
type Variable struct {
	Name string
	Type *celgo.Type
}

// Function is a global function that is implemented anew in each Activation.
type Function struct {
	Name      string
	Overloads []Overload
}

// Overload is one form of a function. Its ID is unique in the environment.
type Overload struct {
	ID        string
	Arguments []*celgo.Type
	Result    *celgo.Type
}

// Call implements a function in one Activation. The arguments are of the types of one of the
// function's overloads. It returns a ref.Val, decoded JSON, a Count, or an error: an
// *UnknownError for data that it could not read. It must return the same result for the same
// arguments while the Activation lives, because open counts repeat the evaluation of an
// expression.
type Call func(ctx context.Context, arguments []ref.Val) (any, error)

// Env is the language of one dialect. It is immutable, and safe for concurrent use; creating one
// takes milliseconds, so it is created once.
type Env struct {
	base    *celgo.Env
	dynamic map[string][]Overload
	prices  *cost.List
	objects map[string]map[string]*types.FieldType
	options Options
}

// NewEnv refuses names that are taken, functions without overloads and types that
// are missing.
func NewEnv(options Options) (*Env, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	e := &Env{dynamic: ownFunctions(), options: options}
	if options.Kubernetes {
		e.dynamic = map[string][]Overload{}
	}
	for _, f := range options.Functions {
		e.dynamic[f.Name] = f.Overloads
	}
	e.objects = library.Objects()
	var err error
	e.base, err = celgo.NewEnv(append(languageOptions(options.Kubernetes), e.declarations(options)...)...)
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	e.prices, err = cost.New(e.base, meterName)
	if err != nil {
		return nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	return e, nil
}

func (o Options) check() error {
	seen := map[string]bool{variablesName: true}
	for _, v := range o.Variables {
		if v.Name == "" || v.Type == nil {
			return errors.New("a variable needs a name and a type")
		}
		if seen[v.Name] {
			return fmt.Errorf("the variable %s is declared twice", v.Name)
		}
		seen[v.Name] = true
	}
	taken := ownFunctions()
	for _, f := range o.Functions {
		if f.Name == "" || len(f.Overloads) == 0 {
			return errors.New("a function needs a name and overloads")
		}
		if _, ok := taken[f.Name]; ok {
			return fmt.Errorf("the function %s is declared twice", f.Name)
		}
		taken[f.Name] = f.Overloads
	}
	return nil
}

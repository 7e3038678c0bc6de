package cel

import (
	"encoding/json"
	"fmt"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// The variables with functions that Outside implements.
const (
	resourceName      = "resource"
	httpName          = "http"
	globalContextName = "globalContext"
	imageName         = "image"
)

// libraryContext is the value of such a variable in one Activation.
type libraryContext struct {
	activation *Activation
	is         *types.Type
	bundle     string // of http.Client
}

var _ ref.Val = libraryContext{}

func resourceType() *types.Type { return types.NewOpaqueType("resource.Context") }
func httpType() *types.Type     { return types.NewOpaqueType("http.Context") }
func globalType() *types.Type   { return types.NewOpaqueType("globalcontext.Context") }
func imageDataType() *types.Type {
	return types.NewOpaqueType("imagedata.Context")
}

// resolveLibrary finds the variables of libraries.
func (a *Activation) resolveLibrary(name string) (any, bool) {
	switch o := a.scope.env.options; {
	case name == "json":
		return library.JSON(), true
	case name == "yaml":
		return library.YAML(), true
	case name == resourceName && o.Resource:
		return libraryContext{activation: a, is: resourceType()}, true
	case name == httpName && o.HTTP:
		return libraryContext{activation: a, is: httpType()}, true
	case name == globalContextName && o.GlobalContext:
		return libraryContext{activation: a, is: globalType()}, true
	case name == imageName && o.ImageData:
		return libraryContext{activation: a, is: imageDataType()}, true
	}
	return nil, false
}

// outsideOptions declare the libraries that reach outside.
func outsideOptions(o Options) []celgo.EnvOption {
	var all []celgo.EnvOption
	if o.Resource {
		all = append(all, celgo.Variable(resourceName, resourceType()))
		all = append(all, resourceFunctions(o.Namespaced)...)
	}
	if o.HTTP {
		all = append(all, celgo.Variable(httpName, httpType()))
		all = append(all, httpFunctions()...)
	}
	if o.Authorizer {
		all = append(all, celgo.Variable(authorizer.Name, authorizer.Type()), celgo.Variable(authorizer.ResourceName, authorizer.ResourceType()))
	}
	text := celgo.StringType
	if o.GlobalContext {
		all = append(all, celgo.Variable(globalContextName, globalType()))
		all = append(all, contactFunction("globalcontext_get", globalContextGet, celgo.DynType,
			[][]*celgo.Type{{globalType(), text}, {globalType(), text, text}}, "Get", "get")...)
	}
	if o.ImageData {
		all = append(all, celgo.Variable(imageName, imageDataType()))
		all = append(all, contactFunction("imagedata_get", imageMetadata, celgo.DynType,
			[][]*celgo.Type{{imageDataType(), text}}, "GetMetadata", "getMetadata")...)
	}
	return all
}

// contactFunction declares a function of a contact under both spellings.
func contactFunction(id string, does func(libraryContext, []ref.Val) ref.Val, result *celgo.Type, forms [][]*celgo.Type, names ...string) []celgo.EnvOption {
	binding := celgo.FunctionBinding(func(arguments ...ref.Val) ref.Val {
		c, ok := arguments[0].(libraryContext)
		if !ok {
			return types.MaybeNoSuchOverloadErr(arguments[0])
		}
		return does(c, arguments[1:])
	})
	options := make([]celgo.EnvOption, 0, len(names))
	for _, name := range names {
		overloads := make([]celgo.FunctionOpt, 0, len(forms))
		for i, form := range forms {
			overloads = append(overloads, celgo.MemberOverload(fmt.Sprintf("%s_%s_%d", id, name, i), form, result, binding))
		}
		options = append(options, celgo.Function(name, overloads...))
	}
	return options
}

// answer is a result of Outside.
type answer struct {
	value any
	err   error
}

// ask calls Outside once for equal arguments.
func (a *Activation) ask(what string, question any, ask func() (any, error)) ref.Val {
	value, err := a.once(what, question, ask)
	if err != nil {
		return types.WrapErr(err)
	}
	return a.value(value)
}

func (a *Activation) once(what string, question any, ask func() (any, error)) (any, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	key := what + string(text)
	had, ok := a.asked[key]
	if !ok {
		if len(a.asked) >= maxAsked {
			return nil, &BudgetError{What: "questions to the outside in one evaluation", Most: maxAsked}
		}
		answered := waittime.Begin(a.ctx)
		had.value, had.err = ask()
		answered()
		if a.asked == nil {
			a.asked = map[string]answer{}
		}
		a.asked[key] = had
	}
	if had.err != nil {
		return nil, fmt.Errorf("%s: %w", what, had.err)
	}
	return had.value, nil
}

func globalContextGet(c libraryContext, arguments []ref.Val) ref.Val {
	query := make([]string, 2)
	for i, argument := range arguments {
		text, _ := argument.(types.String)
		query[i] = string(text)
	}
	return c.activation.ask("globalContext.Get", query, func() (any, error) {
		if c.activation.inputs.Outside.GlobalContext == nil {
			return nil, errNotSupplied(globalContextName + " entry " + query[0])
		}
		return inDoubles(c.activation.inputs.Outside.GlobalContext.Get(c.activation.ctx, query[0], query[1]))
	})
}

func imageMetadata(c libraryContext, arguments []ref.Val) ref.Val {
	text, _ := arguments[0].(types.String)
	return c.activation.ask("image.GetMetadata", text, func() (any, error) {
		if c.activation.inputs.Outside.Images == nil {
			return nil, errNotSupplied("image.GetMetadata")
		}
		return inDoubles(c.activation.inputs.Outside.Images.Metadata(c.activation.ctx, string(text)))
	})
}

// inDoubles is an answer that no decoder of Kubernetes read.
func inDoubles[T any](answer T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return Doubles(answer), nil
}

// ConvertToNative implements ref.Val.
func (c libraryContext) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s has no other form", c.is.TypeName())
}

// ConvertToType implements ref.Val.
func (c libraryContext) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return c.is
	}
	return types.NewErr("%s cannot become %s", c.is.TypeName(), to.TypeName())
}

// Equal implements ref.Val.
func (c libraryContext) Equal(other ref.Val) ref.Val {
	o, ok := other.(libraryContext)
	return types.Bool(ok && c.is.TypeName() == o.is.TypeName() && c.bundle == o.bundle)
}

// Type implements ref.Val.
func (c libraryContext) Type() ref.Type { return c.is }

// Value implements ref.Val.
func (c libraryContext) Value() any { return c }

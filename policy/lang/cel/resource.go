package cel

import (
	"fmt"
	"reflect"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

func gvrType() *types.Type { return types.NewOpaqueType("schema.GroupVersionResource") }

// resourceFunctions are the functions of the variable resource. The arguments name the resource
// by apiVersion and resource, or by the result of ToGVR; then, if the environment is not for one
// namespace, follows the namespace.
func resourceFunctions(namespaced bool) []celgo.EnvOption {
	text, object := celgo.StringType, celgo.MapType(celgo.StringType, celgo.DynType)
	labels, names := celgo.MapType(celgo.StringType, celgo.StringType), celgo.ListType(celgo.StringType)
	place := []*celgo.Type{text}
	if namespaced {
		place = nil
	}
	forms := func(rests ...[]*celgo.Type) [][]*celgo.Type {
		var all [][]*celgo.Type
		for _, rest := range rests {
			for _, what := range [][]*celgo.Type{{text, text}, {gvrType()}} {
				form := append([]*celgo.Type{resourceType()}, what...)
				all = append(all, append(append(form, place...), rest...))
			}
		}
		return all
	}
	posts := [][]*celgo.Type{{resourceType(), text, text, object}}
	if !namespaced {
		posts = append(posts, []*celgo.Type{resourceType(), text, text, text, object})
	}
	var all []celgo.EnvOption
	all = append(all, contactFunction("resource_get", resourceGet, object, forms([]*celgo.Type{text}, []*celgo.Type{text, names}), "Get", "get")...)
	all = append(all, contactFunction("resource_list", resourceList, object, forms(nil, []*celgo.Type{labels}), "List", "list")...)
	all = append(all, contactFunction("resource_post", resourcePost, object, posts, "Post", "post")...)
	return append(all, contactFunction("resource_gvr", resourceGVR, gvrType(), [][]*celgo.Type{{resourceType(), text, text}}, "ToGVR", "toGVR")...)
}

// resourceRef parses the resource from the arguments, and returns the remaining ones.
func resourceRef(a *Activation, arguments []ref.Val) (ResourceRef, []ref.Val) {
	var of ResourceRef
	if gvr, ok := arguments[0].(groupVersionResource); ok {
		of, arguments = ResourceRef(gvr), arguments[1:]
	} else {
		of.Group, of.Version = splitVersion(textOf(arguments[0]))
		of.Resource, arguments = textOf(arguments[1]), arguments[2:]
	}
	if a.scope.env.options.Namespaced {
		of.Namespace = a.inputs.Namespace
		return of, arguments
	}
	if namespace, ok := first(arguments).(types.String); ok {
		of.Namespace, arguments = string(namespace), arguments[1:]
	}
	return of, arguments
}

func splitVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}

func first(arguments []ref.Val) ref.Val {
	if len(arguments) == 0 {
		return nil
	}
	return arguments[0]
}

func textOf(value ref.Val) string {
	text, _ := value.(types.String)
	return string(text)
}

func resourceGet(c libraryContext, arguments []ref.Val) ref.Val {
	of, rest := resourceRef(c.activation, arguments)
	of.Name = textOf(rest[0])
	if len(rest) > 1 {
		names, err := Texts(rest[1])
		if err != nil {
			return types.WrapErr(fmt.Errorf("resource.Get: %w", err))
		}
		of.Resource = strings.Join(append([]string{of.Resource}, names...), "/")
	}
	return c.activation.ask("resource.Get", of, func() (any, error) {
		resources, err := c.resources()
		if err != nil {
			return nil, err
		}
		return resources.Get(c.activation.ctx, of)
	})
}

func resourceList(c libraryContext, arguments []ref.Val) ref.Val {
	of, rest := resourceRef(c.activation, arguments)
	labels, err := textMap(rest)
	if err != nil {
		return types.WrapErr(fmt.Errorf("resource.List: %w", err))
	}
	return c.activation.ask("resource.List", []any{of, labels}, func() (any, error) {
		resources, err := c.resources()
		if err != nil {
			return nil, err
		}
		return resources.List(c.activation.ctx, of, labels)
	})
}

func resourcePost(c libraryContext, arguments []ref.Val) ref.Val {
	of, rest := resourceRef(c.activation, arguments)
	native, err := library.Native(rest[0])
	if err != nil {
		return types.NewErr("resource.Post: %v", err)
	}
	object, _ := native.(map[string]any)
	return c.activation.ask("resource.Post", []any{of, object}, func() (any, error) {
		resources, err := c.resources()
		if err != nil {
			return nil, err
		}
		return resources.Post(c.activation.ctx, of, object)
	})
}

func resourceGVR(c libraryContext, arguments []ref.Val) ref.Val {
	apiVersion, kind := textOf(arguments[0]), textOf(arguments[1])
	return c.activation.ask("resource.ToGVR", []string{apiVersion, kind}, func() (any, error) {
		resources, err := c.resources()
		if err != nil {
			return nil, err
		}
		group, version, resource, err := resources.Kind(c.activation.ctx, apiVersion, kind)
		return groupVersionResource{Group: group, Version: version, Resource: resource}, err
	})
}

func (c libraryContext) resources() (Resources, error) {
	if c.activation.inputs.Outside.Resources == nil {
		return nil, errNotSupplied(resourceName)
	}
	return c.activation.inputs.Outside.Resources, nil
}

// groupVersionResource is the result of ToGVR.
type groupVersionResource ResourceRef

var _ ref.Val = groupVersionResource{}

// ConvertToNative implements ref.Val.
func (g groupVersionResource) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s has no other form", gvrType().TypeName())
}

// ConvertToType implements ref.Val.
func (g groupVersionResource) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return gvrType()
	}
	return types.NewErr("%s cannot become %s", gvrType().TypeName(), to.TypeName())
}

// Equal implements ref.Val.
func (g groupVersionResource) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(g) == other) }

// Type implements ref.Val.
func (g groupVersionResource) Type() ref.Type { return gvrType() }

// Value implements ref.Val.
func (g groupVersionResource) Value() any { return g }

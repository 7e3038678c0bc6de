package library

import (
	"reflect"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/image"
)

// dockerHub is Docker Hub's name in Kyverno's policies, and in image's.
const (
	dockerHub       = "index.docker.io"
	normalDockerHub = "docker.io"
)

// reference is an image reference that was parsed.
type reference struct{ image.Ref }

var _ ref.Val = reference{}

func imageType() *types.Type { return types.NewOpaqueType("kyverno.Image") }

func imageFunctions() []cel.EnvOption {
	of, self := []*cel.Type{cel.StringType}, []*cel.Type{imageType()}
	options := function("string_to_image", of, imageType(), text(new(imageParser).parse), "parseImageReference", "image")
	options = append(options, function("is_image_string", of, cel.BoolType, text(isImage), "isImage")...)
	part := func(name, id string, get func(image.Ref) ref.Val, result *cel.Type) {
		options = append(options, member(name, id, self, result, cel.UnaryBinding(func(v ref.Val) ref.Val {
			r, ok := v.(reference)
			if !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
			return get(r.Ref)
		})))
	}
	part("containsDigest", "image_contains_digest", func(r image.Ref) ref.Val { return types.Bool(!r.Digest().IsZero()) }, cel.BoolType)
	for name, get := range map[string]func(image.Ref) string{
		"registry": registryOf, "repository": func(r image.Ref) string { return r.Repository().Path() },
		"identifier": identifierOf, "identifierWithSeparator": separatedIdentifierOf,
		"tag": image.Ref.Tag, "digest": func(r image.Ref) string { return r.Digest().String() },
	} {
		part(name, "image_"+name, func(r image.Ref) ref.Val { return types.String(get(r)) }, cel.StringType)
	}
	return options
}

// imageParser keeps the last reference: an expression reads several parts of one.
type imageParser struct{ last atomic.Pointer[parsedImage] }

type parsedImage struct {
	text  string
	value ref.Val
}

func (p *imageParser) parse(text string) (ref.Val, error) {
	if last := p.last.Load(); last != nil && last.text == text {
		return last.value, nil
	}
	parsed, err := image.Parse(text)
	if err != nil {
		return nil, err
	}
	p.last.Store(&parsedImage{text, reference{parsed}})
	return reference{parsed}, nil
}

func isImage(text string) (ref.Val, error) {
	_, err := image.Parse(text)
	return types.Bool(err == nil), nil
}

func registryOf(r image.Ref) string {
	if r.Registry() == normalDockerHub {
		return dockerHub
	}
	return r.Registry()
}

// identifierOf is the tag, the digest, or both as tag@digest.
func identifierOf(r image.Ref) string {
	switch tag, digest := r.Tag(), r.Digest().String(); {
	case r.Digest().IsZero():
		return tag
	case tag == "":
		return digest
	default:
		return tag + "@" + digest
	}
}

// separatedIdentifierOf has the digest alone where there is one.
func separatedIdentifierOf(r image.Ref) string {
	if r.Digest().IsZero() {
		return ":" + r.Tag()
	}
	return "@" + r.Digest().String()
}

// ConvertToNative implements ref.Val.
func (r reference) ConvertToNative(reflect.Type) (any, error) { return opaque{imageType()}.native() }

// ConvertToType implements ref.Val.
func (r reference) ConvertToType(to ref.Type) ref.Val { return opaque{imageType()}.convert(to) }

// Equal implements ref.Val: references are equal when they mean the same.
func (r reference) Equal(other ref.Val) ref.Val {
	o, ok := other.(reference)
	return types.Bool(ok && r.String() == o.String())
}

// Type implements ref.Val.
func (r reference) Type() ref.Type { return imageType() }

// Value implements ref.Val.
func (r reference) Value() any { return r.Ref }

package imagevalidating

import (
	"slices"
	"sync"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/packages"
)

// The names that expressions read.
const (
	imagesName      = "images"
	attestorsName   = "attestors"
	attestationName = "attestations"
	variablesName   = "variables"
	imageName       = "image" // of a subjectExpression: the image that is asked about
	refName         = "ref"   // of matchImageReferences
)

// The functions that read the gate's answers.
const (
	verifySignatures   = "verifyImageSignatures"
	verifyAttestations = "verifyAttestationSignatures"
	extractPayload     = "extractPayload"
	getImageData       = "getImageData"
	vulnerabilities    = "vulnerabilities"
	firstSignedAt      = "firstSignedAt"
	lastSignedAt       = "lastSignedAt"
)

// environments are the CEL environments of the dialect, each created when a document first needs
// it. Expressions of a namespaced policy run with the gateway's permissions, so they have no HTTP
// and no global context, as in Kyverno.
type environments struct {
	cluster, namespaced, json       func() (*cel.Env, error)
	perImage, perImageNamespaced    func() (*cel.Env, error)
	conditions, namespacedCondition func() (*cel.Env, error)
	reference                       func() (*cel.Env, error)
}

func newEnvironments() environments {
	once := func(options cel.Options) func() (*cel.Env, error) {
		return sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(options) })
	}
	return environments{
		cluster:             once(language(kyvernocel.Reach(false), kyvernocel.OfObject(), ofImages())),
		namespaced:          once(language(kyvernocel.Reach(true), kyvernocel.OfObject(), ofImages())),
		json:                once(language(cel.Options{ImageData: true}, []cel.Variable{{Name: kyvernocel.ObjectName, Type: celgo.DynType}}, ofImages())),
		perImage:            once(language(withoutImageData(kyvernocel.Reach(false)), kyvernocel.OfObject(), ofImages(), oneImage())),
		perImageNamespaced:  once(language(withoutImageData(kyvernocel.Reach(true)), kyvernocel.OfObject(), ofImages(), oneImage())),
		conditions:          once(language(kyvernocel.Reach(false), kyvernocel.OfObject())),
		namespacedCondition: once(language(kyvernocel.Reach(true), kyvernocel.OfObject())),
		reference:           once(language(cel.Options{}, []cel.Variable{{Name: refName, Type: celgo.StringType}})),
	}
}

// withoutImageData frees the name image, which is text in a subjectExpression.
func withoutImageData(o cel.Options) cel.Options {
	o.ImageData = false
	return o
}

// language adds variables, and with those of images the functions.
func language(o cel.Options, variables ...[]cel.Variable) cel.Options {
	for _, list := range variables {
		o.Variables = append(o.Variables, list...)
		for _, v := range list {
			if v.Name == attestorsName {
				o.Functions = functions()
			}
		}
	}
	return o
}

func ofImages() []cel.Variable {
	return []cel.Variable{
		{Name: imagesName, Type: celgo.MapType(celgo.StringType, celgo.ListType(celgo.StringType))},
		{Name: attestorsName, Type: celgo.MapType(celgo.StringType, celgo.DynType)},
		{Name: attestationName, Type: celgo.MapType(celgo.StringType, celgo.StringType)},
	}
}

func oneImage() []cel.Variable { return []cel.Variable{{Name: imageName, Type: celgo.StringType}} }

func functions() []cel.Function {
	list := celgo.ListType(celgo.DynType)
	one := func(name, id string, result *celgo.Type, arguments ...*celgo.Type) cel.Function {
		return cel.Function{Name: name, Overloads: []cel.Overload{{ID: id, Arguments: arguments, Result: result}}}
	}
	named, joined := []*celgo.Type{celgo.StringType, celgo.StringType, list, celgo.StringType, list}, celgo.ListType(celgo.DynType)
	signedAt := func(name string) cel.Function {
		return cel.Function{Name: name, Overloads: []cel.Overload{
			{ID: name + "_string_list", Arguments: []*celgo.Type{celgo.StringType, list}, Result: celgo.TimestampType},
			{ID: name + "_string_string_list", Arguments: []*celgo.Type{celgo.StringType, celgo.StringType, list}, Result: celgo.TimestampType},
		}}
	}
	return append(packages.Functions(), []cel.Function{
		signedAt(firstSignedAt), signedAt(lastSignedAt),
		{Name: vulnerabilities, Overloads: []cel.Overload{
			{ID: "vulnerabilities_string_string_list_string_list", Arguments: named, Result: joined},
			{ID: "vulnerabilities_string_string_list_string_list_duration", Arguments: append(slices.Clone(named), celgo.DurationType), Result: joined},
		}},
		one(verifySignatures, "verify_image_signature_string_stringarray", celgo.IntType, celgo.StringType, list),
		one(verifyAttestations, "verify_image_attestations_string_string_stringarray", celgo.IntType, celgo.StringType, celgo.StringType, list),
		one(getImageData, "get_image_data_string", celgo.DynType, celgo.StringType),
		one(extractPayload, "payload_string_string", celgo.DynType, celgo.StringType, celgo.StringType),
	}...)
}

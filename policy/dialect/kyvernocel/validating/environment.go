package validating

import (
	"sync"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// language creates the CEL environment of a policy's expressions when a document first needs it.
type language func() (*cel.Env, error)

type environments struct{ cluster, namespaced, json, namespacedJSON language }

func newEnvironments() environments {
	return environments{
		cluster: ofObjects(false), namespaced: ofObjects(true), json: ofDocuments(false), namespacedJSON: ofDocuments(true),
	}
}

func once(options cel.Options) language {
	return sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(options) })
}

func ofObjects(namespaced bool) language {
	options := kyvernocel.Reach(namespaced)
	options.Variables = kyvernocel.WithExceptions()
	return once(options)
}

// ofDocuments has nothing of a request, and no global context.
func ofDocuments(namespaced bool) language {
	options := kyvernocel.Reach(namespaced)
	options.GlobalContext, options.ImageData, options.RequestObjects, options.Authorizer = false, false, false, false
	options.Variables = []cel.Variable{{Name: kyvernocel.ObjectName, Type: celgo.DynType}}
	return once(options)
}

func (e *environments) of(json, namespaced bool) language {
	switch {
	case json && namespaced:
		return e.namespacedJSON
	case json:
		return e.json
	case namespaced:
		return e.namespaced
	}
	return e.cluster
}

package native

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
)

// language is what an API server of one version understands. The types of what expressions read were
// checked by the compiler of the policy; here its functions and variables are.
type language struct {
	conditions, validations, mutations *celgo.Env
	// params is for validations with parameters.
	params *celgo.Env
}

// ofRules returns the environment of validations, with parameters or without.
func (l *language) ofRules(hasParams bool) *celgo.Env {
	if hasParams {
		return l.params
	}
	return l.validations
}

func newLanguage(of *version.Version) (*language, error) {
	always := func(options ...celgo.EnvOption) environment.VersionedOptions {
		return environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options}
	}
	request := []celgo.EnvOption{
		celgo.Variable(authorizer.Name, library.AuthorizerType), celgo.Variable(authorizer.ResourceName, library.ResourceCheckType),
	}
	for _, v := range kyvernocel.OfObject() {
		request = append(request, celgo.Variable(v.Name, celgo.DynType))
	}
	variables := celgo.Variable("variables", celgo.DynType)
	base := environment.MustBaseEnvSet(of)
	l := &language{}
	for _, one := range []struct {
		into    **celgo.Env
		options []environment.VersionedOptions
	}{
		{&l.conditions, []environment.VersionedOptions{always(request...)}},
		{&l.validations, []environment.VersionedOptions{always(request...), always(variables)}},
		{&l.params, []environment.VersionedOptions{always(request...), always(variables, celgo.Variable("params", celgo.DynType))}},
		{&l.mutations, []environment.VersionedOptions{
			always(request...), always(variables, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch)),
		}},
	} {
		set, err := base.Extend(one.options...)
		if err != nil {
			return nil, fmt.Errorf("make the CEL environment of Kubernetes %s: %w", of, err)
		}
		*one.into, err = set.Env(environment.NewExpressions)
		if err != nil {
			return nil, fmt.Errorf("make the CEL environment of Kubernetes %s: %w", of, err)
		}
	}
	return l, nil
}

// reads returns the names that an expression of the environment reads, or why an API server does not
// take it.
func reads(env *celgo.Env, expression string) (map[string]bool, error) {
	checked, issues := env.Compile(expression)
	if found := issues.Errors(); len(found) > 0 {
		return nil, fmt.Errorf("line %d: %s", found[0].Location.Line(), found[0].Message)
	}
	names := map[string]bool{}
	for _, one := range checked.NativeRep().ReferenceMap() {
		names[one.Name] = true
	}
	return names, nil
}

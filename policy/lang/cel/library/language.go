package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	k8s "k8s.io/apiserver/pkg/cel/library"
)

// SDK returns the libraries of Kubernetes 1.37 and of Kyverno's SDK; where they have different versions
// of one, the newer. Precision bounds the digits that format() writes.
func SDK(precision int) []cel.EnvOption {
	return append(shared(),
		ext.Bindings(),
		ext.Encoders(),
		ext.Lists(),
		ext.Math(),
		ext.Regex(),
		ext.Strings(ext.StringsMaxPrecision(precision)),
	)
}

// Kubernetes returns the libraries of Kubernetes 1.37 alone, in its versions: an expression that it
// refuses is refused.
func Kubernetes(precision int) []cel.EnvOption {
	const lists, strings = 3, 2 // as in k8s.io/apiserver/pkg/cel/environment
	return append(shared(),
		ext.Lists(ext.ListsVersion(lists)),
		ext.Strings(ext.StringsVersion(strings), ext.StringsMaxPrecision(precision)),
	)
}

func shared() []cel.EnvOption {
	return []cel.EnvOption{
		ext.Sets(),
		ext.TwoVarComprehensions(),
		k8s.CIDR(),
		k8s.Format(),
		k8s.IP(),
		k8s.JSONPatch(),
		k8s.Lists(k8s.ListsVersion(1)),
		k8s.Quantity(),
		k8s.Regex(),
		k8s.SemverLib(k8s.SemverVersion(1)),
		k8s.URLs(),
	}
}

package equality

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// Pair is a policy of a source with its result.
type Pair struct {
	// Name is the policy's, with its namespace and a slash before it if it has one.
	Name           string
	Source, Result []workload.Object
}

// Pairs is Match, with an error if a policy has no result.
func Pairs(source, result []workload.Object) (pairs []Pair, beside []workload.Object, err error) {
	pairs, beside, err = Match(source, result)
	for i := range pairs {
		if of := pairs[i].Source[0]; !slices.ContainsFunc(pairs[i].Result, isOwn) {
			return nil, nil, fmt.Errorf("%s: %s has no result", of.Source(), of)
		}
	}
	return pairs, beside, err
}

func isOwn(o workload.Object) bool { return o.Kind() != "PolicyException" }

// Match finds the result of each policy: documents of its name, or of its name with more behind a hyphen, and the
// bindings of those. Exceptions are with every policy of their side. The rest of the source, which policies look
// up, is returned, too. An error means that a result has no policy.
func Match(source, result []workload.Object) (pairs []Pair, beside []workload.Object, err error) {
	var exceptions []workload.Object
	for _, object := range source {
		switch {
		case object.Kind() == "PolicyException":
			exceptions = append(exceptions, object)
		case !isPolicy(object):
			beside = append(beside, object)
		case isBinding(object):
			at := indexOf(pairs, object)
			if at < 0 {
				return nil, nil, fmt.Errorf("%s: %s is before its policy, or without it", object.Source(), object)
			}
			pairs[at].Source = append(pairs[at].Source, object)
		default:
			pairs = append(pairs, Pair{Name: strings.TrimPrefix(object.Namespace()+"/"+object.Name(), "/"), Source: []workload.Object{object}})
		}
	}
	var otherExceptions []workload.Object
	for _, object := range result {
		switch {
		case object.Kind() == "PolicyException":
			otherExceptions = append(otherExceptions, object)
		case !isPolicy(object):
			beside = append(beside, object)
		default:
			at := indexOf(pairs, object)
			if at < 0 && len(pairs) == 1 {
				at = 0
			}
			if at < 0 {
				return nil, nil, fmt.Errorf("%s: %s has the name of no policy of the source", object.Source(), object)
			}
			pairs[at].Result = append(pairs[at].Result, object)
		}
	}
	for i := range pairs {
		pairs[i].Source, pairs[i].Result = append(pairs[i].Source, exceptions...), append(pairs[i].Result, otherExceptions...)
	}
	return pairs, beside, nil
}

// isPolicy reports whether a document is a policy, or a part of one.
func isPolicy(o workload.Object) bool {
	groups := []string{"kyverno.io", "policies.kyverno.io", "admissionregistration.k8s.io", "policy.sigstore.dev"}
	return slices.Contains(groups, o.Group()) && (strings.Contains(o.Kind(), "Policy"))
}

func isBinding(o workload.Object) bool { return strings.HasSuffix(o.Kind(), "PolicyBinding") }

// indexOf finds the policy to which a document belongs: the one with the longest name that fits.
func indexOf(pairs []Pair, o workload.Object) int {
	names := []string{o.Name()}
	if spec, ok := o.Content()["spec"].(map[string]any); ok && isBinding(o) {
		of, _ := spec["policyName"].(string)
		names = append(names, of)
	}
	best, length := -1, 0
	for i := range pairs {
		own := pairs[i].Source[0].Name()
		fits := slices.ContainsFunc(names, func(n string) bool { return n == own || strings.HasPrefix(n, own+"-") })
		if fits && len(own) > length {
			best, length = i, len(own)
		}
	}
	return best
}

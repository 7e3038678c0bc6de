package exception

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Annotations of the source that the result has fields for.
const (
	imagesAnnotation  = "quaymaster.dev/images"
	expiresAnnotation = "quaymaster.dev/expires"
)

// Document is a PolicyException of kyverno.io that its dialect has compiled.
type Document struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Exceptions  []Entry        `json:"exceptions"`
		Match       match.Document `json:"match"`
		Conditions  any            `json:"conditions"`
		Background  *bool          `json:"background"`
		PodSecurity []any          `json:"podSecurity"`
	} `json:"spec"`
}

// Entry names rules of a policy: their names may be patterns.
type Entry struct {
	PolicyName string   `json:"policyName"`
	RuleNames  []string `json:"ruleNames"`
}

// Target is a policy that was converted, with the rules that it has of its source.
type Target struct {
	Kind, Namespace, Name string
	Rules                 []Rule
	// Resources are those that it matches, as resource or resource/subresource, and Deletes whether
	// it matches deletions.
	Resources []string
	Deletes   bool
}

// Rule is a rule of the source.
type Rule struct {
	Name string
	// Followers are the rules that follow from it for the controllers of pods.
	Followers []Follower
}

// Follower is a rule for controllers of pods, and their kinds.
type Follower struct {
	Name  string
	Kinds []string
}

// Covered returns which of a rule and its followers an exception names, one letter each: rules of which it names
// different ones are not one policy.
func (d *Document) Covered(policy string, r Rule) string {
	named := func(name string) bool {
		return slices.ContainsFunc(d.Spec.Exceptions, func(e Entry) bool { return e.PolicyName == policy && wildcard.Any(e.RuleNames, name) })
	}
	letter := func(name string) string {
		if named(name) {
			return "y"
		}
		return "n"
	}
	text := letter(r.Name)
	for _, f := range r.Followers {
		text += letter(f.Name)
	}
	return text
}

// Result is a converted exception. Its labels and annotations are those of the source without what
// has become a field.
type Result struct {
	Name        string
	Annotations map[string]string
	Spec        Spec
}

// Spec has the fields in the order in which they are read.
type Spec struct {
	PolicyRefs      []Ref                      `json:"policyRefs"`
	Images          []string                   `json:"images,omitempty"`
	MatchConditions []admission.MatchCondition `json:"matchConditions,omitempty"`
	ExpiresAt       string                     `json:"expiresAt,omitempty"`
}

// Ref names a policy.
type Ref struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Convert converts an exception. Targets returns the policies that a policy of the source has become, by its
// name as exceptions name it. There are several results where the exception names the rules for pods of one policy, and
// all rules of another. A path of an error is below the document.
func Convert(d *Document, targets func(policy string) []Target) ([]Result, error) {
	if err := d.unsupported(); err != nil {
		return nil, err
	}
	var groups []group
	for i, e := range d.Spec.Exceptions {
		if slices.ContainsFunc(d.Spec.Exceptions[:i], func(other Entry) bool { return other.PolicyName == e.PolicyName }) {
			continue // its rules were looked at with the first entry
		}
		at := source.Index("spec.exceptions", i)
		for _, t := range targets(e.PolicyName) {
			kinds, isNamed, err := d.kindsOf(e.PolicyName, t, at+".ruleNames")
			switch {
			case err != nil:
				return nil, err
			case !isNamed || len(d.images()) > 0 && !verifiesImages(t):
				continue // an exception for images exempts no object
			}
			groups = with(groups, kinds, t)
		}
	}
	if len(groups) == 0 {
		return nil, &source.Unsupported{Path: "spec.exceptions", Found: "no rule of a converted policy"}
	}
	var results []Result
	for i, g := range groups {
		r, err := d.result(g)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			r.Name += "-" + strconv.Itoa(i+1)
		}
		results = append(results, r)
	}
	return results, nil
}

// unsupported refuses what narrows an exception, and has no form in the result.
func (d *Document) unsupported() error {
	switch {
	case d.Spec.Background != nil && !*d.Spec.Background:
		return &source.Unsupported{Path: "spec.background", Found: "false: an exception that does not count for existing objects"}
	case len(d.Spec.PodSecurity) > 0:
		return &source.Unsupported{Path: "spec.podSecurity", Found: "an exception from some controls of the Pod Security Standards, of which the rest holds"}
	}
	return nil
}

// group is policies that one result names: the exception is for the same kinds of each.
type group struct {
	kinds   []string // empty for all of them
	targets []Target
}

func with(groups []group, kinds []string, t Target) []group {
	at := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.kinds, kinds) })
	if at < 0 {
		groups, at = append(groups, group{kinds: kinds}), len(groups)
	}
	groups[at].targets = append(groups[at].targets, t)
	return groups
}

// kindsOf returns the kinds of the objects for which the exception names the rules of a policy; none for all of them.
func (d *Document) kindsOf(policy string, t Target, at string) (kinds []string, isNamed bool, err error) {
	covered := d.Covered(policy, t.Rules[0])
	for _, r := range t.Rules {
		own := d.Covered(policy, r)
		if strings.Contains(own, "y") != strings.Contains(covered, "y") || !sameKinds(r, t.Rules[0], own, covered) {
			return nil, false, &source.Unsupported{Path: at, Found: fmt.Sprintf("some of the rules that have become one policy, %s", t.Name)}
		}
	}
	if !strings.Contains(covered, "n") || !strings.Contains(covered, "y") {
		return nil, strings.Contains(covered, "y"), nil
	}
	return kindsIn(t.Rules[0], covered), true, nil
}

func sameKinds(a, b Rule, ofA, ofB string) bool {
	all := func(text string) bool { return !strings.Contains(text, "n") }
	return all(ofA) == all(ofB) && (all(ofA) || slices.Equal(kindsIn(a, ofA), kindsIn(b, ofB)))
}

// kindsIn returns the kinds of objects for which letters of Covered are y. A rule that others follow is about pods.
func kindsIn(r Rule, covered string) (kinds []string) {
	if covered[0] == 'y' {
		kinds = append(kinds, "Pod")
	}
	for i, f := range r.Followers {
		if covered[i+1] == 'y' {
			kinds = append(kinds, f.Kinds...)
		}
	}
	return kinds
}

func verifiesImages(t Target) bool { return strings.HasSuffix(t.Kind, "ImageValidatingPolicy") }

// images are the patterns of the annotation for them.
func (d *Document) images() (patterns []string) {
	for text := range strings.FieldsFuncSeq(d.Metadata.Annotations[imagesAnnotation], func(r rune) bool { return r == ',' || r == '\n' }) {
		text = strings.TrimSpace(text)
		if text != "" {
			patterns = append(patterns, reference.Normal(text))
		}
	}
	return patterns
}

func (d *Document) result(g group) (Result, error) {
	r := Result{Name: d.Metadata.Name, Annotations: map[string]string{}}
	for key, value := range d.Metadata.Annotations {
		if !slices.Contains([]string{imagesAnnotation, expiresAnnotation, "kubectl.kubernetes.io/last-applied-configuration"}, key) {
			r.Annotations[key] = value
		}
	}
	namespace := cmp.Or(d.Metadata.Namespace, "default")
	for _, t := range g.targets {
		ref := Ref{Kind: t.Kind, Name: t.Name}
		if t.Namespace != "" && t.Namespace != namespace {
			ref.Name = t.Namespace + "/" + t.Name
		}
		r.Spec.PolicyRefs = append(r.Spec.PolicyRefs, ref)
	}
	r.Spec.Images = d.images()
	r.Spec.ExpiresAt = strings.TrimSpace(d.Metadata.Annotations[expiresAnnotation])
	about := factsOf(g.targets)
	var err error
	r.Spec.MatchConditions, err = conditionsOf(d.Spec.Match, about)
	if err == nil && d.Spec.Conditions != nil {
		err = r.require(d.Spec.Conditions, about)
	}
	if len(g.kinds) > 0 && !namesOnly(d.Spec.Match, g.kinds) {
		r.Spec.MatchConditions = slices.Insert(r.Spec.MatchConditions, 0, admission.MatchCondition{
			Name: "rules", Expression: celtext.Any("request.kind.kind", g.kinds),
		})
	}
	return r, err
}

// require adds the conditions in JMESPath.
func (r *Result) require(conditions any, about facts) error {
	if about.deletes {
		return &source.Unsupported{Path: "spec.conditions", Found: "conditions for deletions, which have an old object alone"}
	}
	text, err := condition.CompileExempting(conditions, jmespath.Scope{Operations: []string{"CREATE", "UPDATE"}})
	if found, ok := errors.AsType[*source.Unsupported](err); ok {
		return &source.Unsupported{Path: source.Below("spec.conditions", found.Path), Found: found.Found}
	}
	r.Spec.MatchConditions = append(r.Spec.MatchConditions, admission.MatchCondition{Name: "conditions", Expression: text})
	return err
}

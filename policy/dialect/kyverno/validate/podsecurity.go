package validate

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// standard is a check of a Pod Security Standard.
type standard struct {
	path     string
	standard *podsecurity.Standard
}

func (c compiler) podSecurity(doc *podSecurity, path string) (checker, error) {
	s, err := podsecurity.Compile(doc.Level, doc.Version, doc.Exclude)
	if err != nil {
		return nil, document.Under(path, err)
	}
	return &standard{path: path, standard: s}, nil
}

func (s *standard) check(q *question, _ variable.Context) outcome {
	if q.deletes() {
		return outcome{}
	}
	pod, err := podsecurity.PodOf(q.about.Subject.Kind, q.about.Subject.Object.Map())
	if err != nil {
		return undecided(s.path, err)
	}
	result, err := s.standard.Check(pod)
	if err != nil {
		return undecided(s.path, err)
	}
	exempted := !result.Met() && len(q.about.Exempt) > 0
	if exempted {
		exempt, err := exclusions(q.about.Exempt)
		if err != nil {
			return undecided(s.path, err)
		}
		result = result.Except(exempt)
	}
	if result.Met() {
		return outcome{result: policy.Pass, exempted: exempted}
	}
	found := failed(result.Message(q.rule.Name()))
	found.properties = result.Properties()
	return found
}

// exclusions compiles the exclusions of exceptions.
func exclusions(list []policy.PodSecurityExemption) (*podsecurity.Exclusions, error) {
	docs := make([]podsecurity.Exclusion, len(list))
	for i, e := range list {
		docs[i] = podsecurity.Exclusion{ControlName: e.Control, Images: e.Images, RestrictedField: e.Field, Values: e.Values}
	}
	compiled, err := podsecurity.CompileExclusions(docs, "podSecurity")
	if err != nil {
		return nil, fmt.Errorf("exceptions: %w", err)
	}
	return compiled, nil
}

package validate

import (
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// signed is a check of the signed manifest of an object.
type signed struct{ rule *manifests.Rule }

func (c compiler) manifests(doc *manifests.Document, path string) (checker, error) {
	rule, err := manifests.Compile(c.Manifests, doc, path)
	if err != nil {
		return nil, err
	}
	return &signed{rule: rule}, nil
}

func (s *signed) check(q *question, _ variable.Context) outcome {
	if q.deletes() {
		return outcome{}
	}
	result, reasons := s.rule.Check(q.ctx, q.about.Subject)
	return outcome{result: result, reasons: reasons}
}

package validate

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// denial denies where its conditions hold; without any, always. Where they are
// indeterminate, so is the rule.
type denial struct {
	path       string
	conditions *condition.Conditions
}

func (c compiler) deny(doc *deny, path string) (checker, error) {
	if doc.Conditions != nil {
		if err := document.EmptyConditions(doc.Conditions, path+".conditions"); err != nil {
			return nil, err
		}
	}
	conditions, err := condition.CompileDeny(c.context().Engine, doc.Conditions)
	if err != nil {
		return nil, field.Below(path+".conditions", err)
	}
	return &denial{path: path + ".conditions", conditions: conditions}, nil
}

func (d *denial) check(q *question, data variable.Context) outcome {
	result, err := d.conditions.Evaluate(data)
	switch {
	case err != nil:
		return undecided(d.path, err)
	case result.Indeterminate:
		return undecided(d.path, result.Cause())
	case !result.Held:
		return passed()
	}
	var own []string
	for _, o := range result.Decisive() {
		if o.Message != "" {
			own = append(own, o.Message)
		}
	}
	return outcome{result: policy.Fail, reasons: []policy.Reason{{
		Code: policy.Violated, Message: q.rule.message.denied(data, strings.Join(own, "; ")), Found: result.Words(),
	}}}
}

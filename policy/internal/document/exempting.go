package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// ExemptingConditions refuses conditions of an exemption that hold for nothing in Kyverno 1.19 and would exempt
// here: NotIn, AnyNotIn and AllNotIn with a number or a boolean as value.
func ExemptingConditions(conditions any, path string) error {
	switch v := conditions.(type) {
	case map[string]any:
		if operator, _ := v["operator"].(string); strings.HasSuffix(operator, "NotIn") {
			switch v["value"].(type) {
			case bool, float64, int64:
				return field.Fail(path+".value", "%v never holds under %s in Kyverno, and would exempt here: write the list [%[1]v]", v["value"], operator)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "any" || name == "all" {
				if err := ExemptingConditions(v[name], path+"."+name); err != nil {
					return err
				}
			}
		}
	case []any:
		for i, item := range v {
			if err := ExemptingConditions(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

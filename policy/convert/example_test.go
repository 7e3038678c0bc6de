package convert_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert"
)

// A notation trust policy that skips one repository and refuses all others becomes
// one policy; one that asks for less than strict verification is refused.
func ExampleConvert() {
	const trustPolicy = `{"version": "1.0", "trustPolicies": [
  {"name": "tools", "registryScopes": ["registry.example.com/tools"], "signatureVerification": {"level": "skip"}}]}`
	out, err := convert.Convert([]byte(trustPolicy), convert.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "kind:") || strings.Contains(line, "name:") || strings.Contains(line, "message:") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	_, err = convert.Convert([]byte(strings.Replace(trustPolicy, "skip", "audit", 1)), convert.Options{})
	if refusal := new(convert.Refusal); errors.As(err, &refusal) {
		summary, _, _ := strings.Cut(refusal.Error(), "\n")
		fmt.Println(summary, refusal.Problems[0].Path)
	}
	// Output:
	// kind: ImageValidatingPolicy
	// name: notation-unmatched
	// message: no trust policy matches this repository
	// the policy cannot be converted (3 problems): trustPolicies[0].signatureVerification.level
}

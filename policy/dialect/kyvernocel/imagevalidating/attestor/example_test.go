package attestor_test

import (
	"context"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// The identity of an attestor may depend on the image.
func Example() {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "image", Type: celgo.StringType}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	scope, err := env.NewScope()
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{{
		Name: "release",
		Cosign: &v1alpha1.Cosign{Keyless: &v1alpha1.Keyless{Identities: []v1alpha1.Identity{{
			Issuer:            "https://token.actions.githubusercontent.com",
			SubjectExpression: `"https://github[.]com/org/" + image.split("/")[2] + "/.+"`,
		}}}},
	}}, attestor.Options{Images: scope})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, image := range []string{"ghcr.io/org/app", "ghcr.io"} {
		asked := scope.NewActivation(cel.Inputs{Variables: map[string]any{"image": image}})
		authorities, err := list[0].Authorities(context.Background(), attestor.Activations{Image: asked})
		if err != nil {
			fmt.Println("could not ask:", err)
			continue
		}
		fmt.Println(authorities[0].Name, authorities[0].Keyless)
	}
	// Output:
	// attestors.release /https://github[.]com/org/app/.+/ (https://token.actions.githubusercontent.com)
	// could not ask: spec.attestors[0].cosign.keyless.identities[0].subjectExpression: index out of bounds: 2
}

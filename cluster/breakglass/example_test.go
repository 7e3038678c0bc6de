package breakglass_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
)

func ExampleJudge() {
	opened := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	shop := &metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"quaymaster.dev/break-glass": ""},
		Annotations: map[string]string{
			"quaymaster.dev/break-glass-reason": "registry is down, INC-42",
			"quaymaster.dev/break-glass-until":  "2030-01-31T14:00:00Z",
			"quaymaster.dev/break-glass-by":     "on-call",
		},
	}
	for _, later := range []time.Duration{0, 3 * time.Hour} {
		o, why := breakglass.Judge("quaymaster.dev/break-glass", shop, opened.Add(later))
		fmt.Printf("%s %s%s\n", o.Namespace, o, map[breakglass.Why]string{breakglass.Expired: ": close it"}[why])
	}
	// Output:
	// shop until 2030-01-31T14:00:00Z, by on-call: "registry is down, INC-42"
	// shop until 2030-01-31T14:00:00Z, by on-call: "registry is down, INC-42": close it
}

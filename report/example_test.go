package report_test

import (
	"fmt"
	"os"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

func ExampleText() {
	check := &policy.Check{
		Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "by-release-key", Entry: "verifyImages[0]",
		Action: policy.Enforce,
	}
	missing := policy.Reason{Code: policy.Unsigned, Path: "attestors[0].entries[0].keys", Message: "no signature found"}
	outcomes := []gate.Outcome{{
		Subject: &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web"}, Source: "pod.yaml", Result: gate.Deny,
		Verdicts: []gate.Verdict{{
			Image:  policy.Image{Container: "web", Role: "container", Ref: image.MustParse("registry.example/web:1.4")},
			Result: gate.Deny, Reasons: []policy.Reason{missing},
			Decisions: []policy.Decision{{Check: check, Result: policy.Fail, Reasons: []policy.Reason{missing}}},
		}},
	}}
	reproduce := func(_ report.Record, v report.Image) string { return "quaymaster explain " + v.Written }
	if err := report.Text(os.Stdout, outcomes, report.TextOptions{Reproduce: reproduce}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exit status", report.Count(outcomes).ExitStatus(false))
	// Output:
	// Pod shop/web (pod.yaml)
	//   ✗ deny       web  registry.example/web:1.4
	//     policy    ClusterPolicy/signed, rule by-release-key
	//     at        verifyImages[0].attestors[0].entries[0].keys
	//     why       no signature found [unsigned]
	//     next      sign the image with a key or identity that the policy names. If it
	//               was signed, its tag may have moved since: quaymaster tree IMAGE
	//               lists what this digest has
	//     try       quaymaster explain registry.example/web:1.4
	//
	// 0 allowed, 1 denied, 0 could not be verified
	// exit status 1
}

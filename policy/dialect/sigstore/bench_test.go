package sigstore_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// BenchmarkWarm asks about a pod of three containers that the gate has judged before.
func BenchmarkWarm(b *testing.B) {
	y := newYard(b)
	for _, c := range []struct{ name, spec string }{
		{"none", ""},
		{"declared", "  authorities: [{key: {data: $RELEASE}}]\n"},
		{"judged", "  authorities: [{key: {data: $RELEASE}}, {key: {data: $SECURITY}, attestations: [{name: scan, predicateType: vuln}]}]\n"},
		{"cue", "  authorities: [{name: release, key: {data: $RELEASE}}]\n  policy: {type: cue, data: 'authorityMatches: release: signatures: [...{id: string}]'}\n"},
		{"rego", "  authorities: [{name: release, key: {data: $RELEASE}}]\n  policy: {type: rego, data: \"package sigstore\\nisCompliant { input.authorityMatches.release.signatures[_].id }\"}\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var policies []*policy.Policy
			if c.spec != "" {
				policies = append(policies, y.compile(b, strings.ReplaceAll(head, "ghcr.io/org", "$HOST/shop")+c.spec))
			}
			g, err := y.Gate(policies...)
			if err != nil {
				b.Fatal(err)
			}
			var containers []string
			for range 3 {
				image := y.build("shop")
				if err := y.SignLegacy(image, verifytest.Claim{Signer: y.release, NoLog: true}, nil); err != nil {
					b.Fatal(err)
				}
				containers = append(containers, `{"name":"c`+strconv.Itoa(len(containers))+`","image":"`+image.Name+`"}`)
			}
			asks := request(b, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"prod"},"spec":{"containers":[`+strings.Join(containers, ",")+`]}}`, "")
			b.ReportAllocs()
			for b.Loop() {
				if out := g.Decide(b.Context(), asks); out.Result != gate.Allow {
					b.Fatal(out.Verdicts[0].Reasons)
				}
			}
		})
	}
}

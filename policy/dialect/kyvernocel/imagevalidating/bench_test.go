package imagevalidating_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// BenchmarkJudge is the cost of a policy for a pod of three containers without
// verification: planning and judging.
func BenchmarkJudge(b *testing.B) {
	h := newEnv(b)
	for name, expression := range map[string]string{
		"signatures": allSigned,
		"statements": "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) > 0 && extractPayload(i, attestations.scan).predicate.level == 'low')",
		"object":     "has(object.spec.containers) && object.spec.containers.all(c, c.image.contains('@sha256:')) && " + allSigned,
	} {
		rule := h.policy(b, with(expression)).Rules[0]
		request := pod(b, h.Registry.Host()+"/org/a:1", h.Registry.Host()+"/org/b:1", h.Registry.Host()+"/org/c:1")
		subject := &policy.Subject{Object: policy.ContentFrom(request.Object), Version: "v1", Kind: "Pod", Namespace: "default", Operation: "CREATE"}
		var images []policy.Image
		var pinned []image.Pinned
		for i, pointer := range []string{"/spec/containers/0/image", "/spec/containers/1/image", "/spec/containers/2/image"} {
			ref := image.MustParse(h.Registry.Host() + "/org/" + string(rune('a'+i)) + ":1")
			images = append(images, policy.Image{Container: "c", Role: "container", Pointer: pointer, Ref: ref})
			digest := testkit.Must(image.ParseDigest("sha256:" + strings.Repeat("a", 64)))(b)
			pinned = append(pinned, testkit.Must(ref.Pin(image.Descriptor{Digest: digest}))(b))
		}
		fact := verify.Fact{Signer: verify.Signer{KeyFingerprint: "a"}, Statement: &attest.Statement{PredicateType: scanType, Predicate: []byte(`{"level":"low"}`)}}
		facts := []verify.Fact{fact}
		answers := func(policy.Question) policy.Answer { return policy.Answer{Facts: facts} }
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan, err := rule.Plan(b.Context(), subject, images)
				if err != nil {
					b.Fatal(err)
				}
				given := make([]policy.Given, len(plan.Checks))
				for i := range plan.Checks {
					given[i] = policy.Given{Check: &plan.Checks[i], Pinned: pinned[i], Answers: answers}
				}
				if judged := plan.Judge.Judge(b.Context(), given); judged.Decisions[0].Result != policy.Pass {
					b.Fatal(judged.Decisions[0].Reasons)
				}
			}
		})
	}
}

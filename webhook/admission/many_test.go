package admission_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// signedBy wants images of a pattern signed with a key.
const signedBy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    preconditions: {all: [{key: '{{ request.operation }}', operator: Equals, value: CREATE}]}
    verifyImages:
    - imageReferences: ["PATTERN"]
      attestors:
      - entries:
        - keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}
`

// counted is a rule that counts how often it was asked.
type counted struct {
	policy.Selective
	asked *int
}

func (c counted) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	*c.asked++
	return c.Selective.Plan(ctx, s, images)
}

// policies are count policies of Kyverno: the first matches the env's
// images, the others match those of other teams, on the same registry and elsewhere.
func (h *env) policies(t testing.TB, count int, asked *int) []*policy.Policy {
	t.Helper()
	engine := testkit.Must(jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader}))(t)
	compiler := testkit.Must(kyverno.New(kyverno.Options{Engine: engine}))(t)
	var all []*policy.Policy
	for i := range count {
		pattern := h.Registry.Host() + "/shop/*"
		switch {
		case i == 0:
		case i%3 == 0:
			pattern = fmt.Sprintf("%s/team-%d/*", h.Registry.Host(), i)
		case i%3 == 1:
			pattern = fmt.Sprintf("ghcr.io/team-%d/*", i)
		default:
			pattern = fmt.Sprintf("*/team-%d/app:*", i)
		}
		text := strings.NewReplacer("NAME", fmt.Sprintf("team-%d", i), "PATTERN", pattern, "KEY", fmt.Sprintf("%q", h.Signer.PublicPEM())).Replace(signedBy)
		p := testkit.Must(compiler.Compile([]byte(text), "team.yaml"))(t)
		for n, rule := range p.Rules {
			p.Rules[n] = counted{rule.(policy.Selective), asked}
		}
		all = append(all, p)
	}
	return all
}

// TestOnlyPoliciesThatMatchAreAsked counts the cost of a thousand policies, of which
// one matches the image.
func TestOnlyPoliciesThatMatchAreAsked(t *testing.T) {
	h := newEnv(t)
	image := h.signed(t, "web")
	var asked int
	handler := endpoint(t, admission.Mutate, h.gateOf(t, h.policies(t, 1000, &asked)...))
	for _, row := range []struct {
		reason, image string
		asked         int
		allowed       bool
	}{
		{"one policy matches the image, and it is signed", image, 1, true},
		{"the same, from memory", image, 1, true},
		{"one policy matches the image, and it is not signed", h.Build("shop/bad", "1", "bad").Name, 1, false},
		{"another policy matches the image, which is not there", h.Registry.Host() + "/team-3/web:1", 1, false},
		{"no policy matches the image", "docker.io/library/nginx:1", 0, true},
	} {
		asked = 0
		a := send(t, handler, review(t, "CREATE", pod(row.image), nil, nil))
		if a.Response.Allowed != row.allowed || asked != row.asked {
			t.Errorf("%s: allowed: %t, %s; %d rules were asked, want %d", row.reason, a.Response.Allowed, a.Response.Status.Message, asked, row.asked)
		}
	}
}

// BenchmarkPolicies compares one policy with a thousand.
func BenchmarkPolicies(b *testing.B) {
	h := newEnv(b)
	for _, containers := range []int{1, 8} {
		now := stored()
		list := now["spec"].(object)["containers"].([]any)[:containers]
		now["spec"].(object)["containers"] = list
		for i, entry := range list {
			entry.(object)["image"] = h.signed(b, fmt.Sprintf("web-%d", i))
		}
		for _, count := range []int{1, 1000} {
			handler := endpoint(b, admission.Mutate, h.gateOf(b, h.policies(b, count, new(int))...))
			admit(b, handler, "CREATE", now, nil)
			b.Run(fmt.Sprintf("containers=%d/policies=%d", containers, count), func(b *testing.B) {
				measure(b, handler, review(b, "CREATE", now, nil, nil))
			})
		}
	}
}

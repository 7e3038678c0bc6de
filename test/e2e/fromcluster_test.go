package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// office is the namespace with the PolicyExceptions that count.
const office = "fromcluster-office"

// fromClusterPolicies are a policy of each dialect, a TrustRoot, an exception and an
// override, for a env and a digest.
func (s *scene) fromClusterPolicies(t *testing.T, digest string) string {
	t.Helper()
	host := s.env.Registry.Host()
	text, err := s.env.YAML(env.Policy{
		Name: "fromcluster", Namespaces: []string{"fromcluster", "fromcluster-spared"}, Images: []string{host + "/kyverno/*"},
	})
	must(t, err)
	root := strings.Replace(trustRoot(s.env.Sigstore, ""), "name: dialects", "name: fromcluster", 1)
	return strings.Join([]string{
		text, s.imagePolicy("ImageValidatingPolicy", "name: fromcluster", host+"/ivpol/*"), root,
		fmt.Sprintf(`
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: fromcluster}
spec:
  images: [{glob: %q}]
  authorities: [{name: trusted, key: {data: %q}, ctlog: {trustRootRef: fromcluster}}]
`, host+"/cip/*", s.env.Signer.PublicPEM()),
		fmt.Sprintf(`
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: fromcluster, namespace: %s}
spec:
  exceptions: [{policyName: fromcluster, ruleNames: [signed]}]
  match: {any: [{resources: {kinds: [Pod], namespaces: [fromcluster-spared]}}]}
---
apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: fromcluster}
spec: {effect: Allow, reason: a bad day, expires: %q, match: {digests: [%q]}}
`, office, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), digest),
	}, "\n---\n")
}

// likeness is a pod, and the expected answer of the API server.
type likeness struct {
	reason, namespace, image string
	allowed                  bool
}

// fromClusterCases are pods that each dialect, each document beside them and the
// mirror decide about, accepted and refused.
func (m *mirrored) fromClusterCases(t *testing.T, spared string) []likeness {
	t.Helper()
	kyverno, ivpol, cip := m.quay(t, "kyverno"), m.quay(t, "ivpol"), m.quay(t, "cip")
	logged := m.env.Unsigned("cip/logged", "1.0")
	must(t, m.env.SignLegacy(logged, verifytest.Claim{Signer: m.env.Signer}, nil)) // with an entry in the log
	copied := m.copied(t, "kyverno/copied", "1.0", m.near)
	m.copyTo(t, kyverno.bare, "kyverno/bare", "1.0", m.near)
	unnamed := m.env.Unsigned("unnamed/app", "1.0")
	return []likeness{
		{"kyverno-signed", "fromcluster", kyverno.signed.Name, true},
		{"kyverno-bare", "fromcluster", kyverno.bare.Name, false},
		{"kyverno-foreign", "fromcluster", kyverno.foreign.Name, false},
		{"kyverno-absent", "fromcluster", m.env.Registry.Host() + "/kyverno/absent:1.0", false},
		{"excepted", "fromcluster-spared", kyverno.bare.Name, true},
		{"not-matched", office, kyverno.bare.Name, true},
		{"ivpol-signed", "fromcluster", ivpol.signed.Name, true},
		{"ivpol-bare", "fromcluster", ivpol.bare.Name, false},
		{"ivpol-foreign", "fromcluster-spared", ivpol.foreign.Name, false},
		{"overridden", "fromcluster", spared, true},
		{"cip-logged", "fromcluster", logged.Name, true},
		{"cip-without-a-log", "fromcluster", cip.signed.Name, false},
		{"cip-bare", "fromcluster", cip.bare.Name, false},
		{"unnamed", "fromcluster", unnamed.Name, true},
		{"unnamed-opted-in", "fromcluster-opted-in", unnamed.Name, false},
		{"redirected", "fromcluster", copied.Name, true},
		{"copy-signed", "fromcluster", tagged(m.near, copied), true},
		{"copy-bare", "fromcluster", tagged(m.near, kyverno.bare), false},
	}
}

// TestFromCluster: for the same pods, the command line has the API server's results, by the
// cluster and by a bundle of it.
func TestFromCluster(t *testing.T) {
	c := gateway.Configuration{}
	c.Exceptions.Namespaces = []string{office}
	m := mirror(t, "fromcluster", c)
	m.in(t, office)
	m.in(t, "fromcluster-spared")
	m.in(t, "fromcluster-opted-in", "policy.sigstore.dev/include", "true")
	spared := m.env.Unsigned("ivpol/spared", "1.0")
	m.redirectBy(t, document(t, "fromcluster", m.entry("kyverno", nil)))
	m.put(t, m.fromClusterPolicies(t, spared.Manifest.Digest))
	must(t, m.plane.ApplyYAML(t.Context(), `
apiVersion: v1
kind: ConfigMap
metadata: {name: quaymaster, namespace: quaymaster}
data: {gateway.yaml: "{apiVersion: quaymaster.dev/v1alpha1, kind: Configuration, exceptions: {namespaces: [fromcluster-office]}}"}
`))
	folder := t.TempDir()
	kubeconfig, err := controlplane.Kubeconfig(m.plane.Admin())
	must(t, err, os.Mkdir(filepath.Join(folder, "deploy"), 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "kubeconfig"), bytes.ReplaceAll(kubeconfig, []byte(`"default"`), []byte(`"production"`)), 0o600))
	cases := m.fromClusterCases(t, spared.Name)
	answers := m.answered(t, cases)
	writePods(t, folder, "all.yaml", cases)
	writePods(t, folder, "deploy/good.yaml", slices.DeleteFunc(slices.Clone(cases), func(l likeness) bool { return !l.allowed }))

	status, said, told := command(t, folder, "bundle", "create", "-o", "cluster.tar.gz", "--from-cluster", "--context", "production")
	if status != 0 {
		t.Fatalf("the bundle: exit status %d: %s%s", status, said, told)
	}
	eventually(t, func(context.Context) error {
		status, said, told := command(t, folder, "policy", "list", "--context", "production")
		for _, line := range []string{
			`(?m)^ClusterPolicy/fromcluster +enforce +True +3 +CronJob,`, `(?m)^ImageValidatingPolicy/fromcluster +enforce +True `,
			`(?m)^ClusterImagePolicy/fromcluster +enforce +True `, `(?m)^PolicyException/` + office + `/fromcluster +- +True `, `(?m)^ImageOverride/fromcluster +- +True `,
		} {
			if !regexp.MustCompile(line).MatchString(said) || status != 0 {
				return fmt.Errorf("no %s: exit status %d: %s%s", line, status, said, told)
			}
		}
		return nil
	})
	for name, from := range map[string][]string{"the cluster": {"--from-cluster", "--context", "production"}, "a bundle": {"--bundle", "cluster.tar.gz"}} {
		t.Run(name, func(t *testing.T) {
			status, said, told := command(t, folder, append([]string{"verify", "-o", "json", "-f", "all.yaml"}, from...)...)
			if status != 1 {
				t.Errorf("exit status %d, want 1, for some are denied", status)
			}
			compare(t, said, answers)
			if strings.Contains(told, "could not be read") {
				t.Errorf("the gateway's settings are in a ConfigMap: %s", told)
			}
			if status, _, told := command(t, folder, append([]string{"verify", "-f", "deploy/good.yaml"}, from...)...); status != 0 {
				t.Errorf("an admitted pod: exit status %d: %s", status, told)
			}
		})
	}
	t.Run("docs/from-cluster.md", func(t *testing.T) { runPage(t, folder) })
}

// runPage runs the commands of the page, with pods that the API server admits.
func runPage(t *testing.T, folder string) {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "from-cluster.md"))
	must(t, err)
	commands := regexp.MustCompile(`(?m)^    quaymaster (.+)$`).FindAllStringSubmatch(string(page), -1)
	if len(commands) != 3 {
		t.Fatalf("%d commands, want 3: this test must know them", len(commands))
	}
	for _, one := range commands {
		if status, said, told := command(t, folder, strings.Fields(one[1])...); status != 0 {
			t.Errorf("quaymaster %s: exit status %d:\n%s%s", one[1], status, said, told)
		}
	}
}

// answered asks the API server: by the name of a pod, the image that it has then, or
// none if it is refused.
func (m *mirrored) answered(t *testing.T, cases []likeness) map[string]string {
	t.Helper()
	answers := map[string]string{}
	// Refused pods come first: then the API server evaluates all of them.
	accepted := func(l likeness) bool { return l.allowed }
	refused := func(l likeness) bool { return !l.allowed }
	for _, l := range append(slices.DeleteFunc(slices.Clone(cases), accepted), slices.DeleteFunc(slices.Clone(cases), refused)...) {
		in := *m.scene
		in.namespace = l.namespace
		eventually(t, func(ctx context.Context) error {
			got, err := in.dryRun(ctx, pod(l.reason, l.image))
			if (err == nil) != l.allowed {
				return fmt.Errorf("%s: %w, want that it is admitted: %t", l.reason, err, l.allowed)
			}
			answers[l.reason] = ""
			if err == nil {
				answers[l.reason] = images(got)[0]
			}
			return nil
		})
	}
	return answers
}

func writePods(t *testing.T, folder, name string, cases []likeness) {
	t.Helper()
	var all [][]byte
	for _, l := range cases {
		p := pod(l.reason, l.image)
		p.Namespace = l.namespace
		p.Spec.RestartPolicy = core.RestartPolicyAlways
		all = append(all, manifest(t, p))
	}
	must(t, os.WriteFile(filepath.Join(folder, name), bytes.Join(all, []byte("---\n")), 0o600))
}

// compare reads a record and compares what became of each image.
func compare(t *testing.T, record string, answers map[string]string) {
	t.Helper()
	var list struct {
		Items []struct {
			Object struct{ Name string }
			Result string
			Images []struct {
				Written, Pinned string
				Pin             bool
				Mirror          *struct{ Target string }
			}
		}
	}
	if err := json.Unmarshal([]byte(record), &list); err != nil {
		t.Fatalf("%v:\n%s", err, record)
	}
	if len(list.Items) != len(answers) {
		t.Errorf("%d records, want %d", len(list.Items), len(answers))
	}
	for _, item := range list.Items {
		got := ""
		if item.Result == "allow" || item.Result == "unchecked" {
			image := item.Images[0]
			switch {
			case image.Mirror != nil && image.Mirror.Target != "":
				got = image.Mirror.Target
			case image.Pin:
				got = image.Pinned
			default:
				got = image.Written
			}
		}
		if want := answers[item.Object.Name]; got != want {
			t.Errorf("%s: %s, image %q, and the API server made it %q", item.Object.Name, item.Result, got, want)
		}
	}
}

// command runs the program in a folder with its kubeconfig.
func command(t *testing.T, folder string, arguments ...string) (status int, out, errs string) {
	t.Helper()
	binary, err := shared.binary()
	must(t, err)
	var said, told bytes.Buffer
	run := exec.CommandContext(t.Context(), binary, arguments...)
	run.Dir, run.Env = folder, []string{"HOME=" + folder, "KUBECONFIG=" + filepath.Join(folder, "kubeconfig")}
	run.Stdout, run.Stderr = &said, &told
	if err := run.Run(); run.ProcessState == nil {
		t.Fatal(err)
	}
	return run.ProcessState.ExitCode(), said.String(), told.String()
}

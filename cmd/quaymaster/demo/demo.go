// Package demo is the command quaymaster demo: a registry, policies and a gateway in one process.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/examples/demo"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a local signing and verification demo",
		Long: `Demo starts a registry on loopback, signs images in every format with keys and a
Sigstore that exist for this run only, tampers with some of them, applies the
policies of examples/demo and prints the verdicts with their reasons. Then it
starts a mirror, and shows which image would be pulled from it. Last it starts the
gateway with the same policies, and sends requests as an API server does. On a
terminal the dashboard, with all of these images, and a playground for policies
remain until you interrupt the demo (Ctrl-C).

Exit status: 0 if each verdict is as expected, 2 if one is not, or a server could
not be started.`,
		Example: `  quaymaster demo
  quaymaster demo --keep
  quaymaster demo | less`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), t, keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the registry running until interrupted, and print commands to try")
	return cmd
}

// scene is one image of the demo with its expected verdict.
type scene struct {
	image gatetest.Image
	story string
	want  gate.Result
}

// stand has the parts of the demo that the gateway uses.
type stand struct {
	folder, registry string
	scenes           []scene
}

// signers are the demo's signers.
type signers struct {
	webTeam, securityTeam, stranger, workflow *verifytest.Signer
	notary                                    *verifytest.Notary
}

// nowhere is the address of a registry that does not answer.
const nowhere = "127.0.0.1:1"

const workflow = "https://github.com/example/shop/.github/workflows/release.yaml@refs/tags/v1.4.0"

func runDemo(ctx context.Context, t command.Terminal, keep bool) error {
	started := time.Now()
	folder, err := os.MkdirTemp("", "quaymaster-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	registry, err := registrytest.Listen(registrytest.Options{})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer registry.Close()
	sigstore, err := verifytest.New(verifytest.Options{Name: "demo"})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	people, err := newSigners(sigstore)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	scenes, err := stage(gatetest.New(registry, sigstore), people)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := writeDemo(folder, sigstore, people, imageOf(scenes, "hotfix").Manifest.Digest); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	fmt.Fprintf(t.Out, "A registry on %s with images, and policies from examples/demo:\n\n", registry.Host())
	for _, s := range scenes {
		fmt.Fprintf(t.Out, "  %-44s %s\n", strings.TrimPrefix(s.image.Name, registry.Host()+"/"), s.story)
	}
	fmt.Fprintln(t.Out)
	outcomes, err := judgeScenes(ctx, t, folder, scenes)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := report.Text(t.Out, outcomes, report.TextOptions{Color: t.Color(), Reproduce: tryAgain(folder, keep)}); err != nil {
		return err
	}
	if err := asExpected(scenes, outcomes); err != nil {
		return err
	}
	mirror, err := startMirror(folder, registry.Host())
	if err != nil {
		return fmt.Errorf("demo: mirror: %w", err)
	}
	defer mirror.Close()
	if err := demoMirror(ctx, t, folder, registry.Host(), mirror.Host()); err != nil {
		return fmt.Errorf("demo: mirror: %w", err)
	}
	return demoGateway(ctx, t, stand{folder, registry.Host(), scenes}, func(dashboard string) error {
		fmt.Fprintf(t.Out, "\nDone in %.1f s.\n", time.Since(started).Seconds())
		if keep || command.IsTerminal(t.Out) {
			return serveUntilEnd(ctx, t.Out, folder, dashboard, scenes)
		}
		fmt.Fprintf(t.Out, "The registry and the dashboard at %s are stopped. To try the commands above, use: quaymaster demo --keep\n", dashboard)
		return nil
	})
}

func newSigners(sigstore *verifytest.Sigstore) (signers, error) {
	var s signers
	var err error
	for _, key := range []**verifytest.Signer{&s.webTeam, &s.securityTeam, &s.stranger} {
		*key, err = verifytest.KeySigner(verifytest.KeyOptions{})
		if err != nil {
			return s, err
		}
	}
	s.workflow, err = sigstore.Keyless(verifytest.Identity{URI: workflow, Issuer: "https://token.actions.githubusercontent.com"})
	if err != nil {
		return s, err
	}
	s.notary, err = verifytest.NewNotary(verifytest.NotaryOptions{Name: "shop database team"})
	return s, err
}

// imageOf returns the image of the scenes with the name shop/NAME.
func imageOf(scenes []scene, name string) gatetest.Image {
	i := slices.IndexFunc(scenes, func(s scene) bool { return strings.Contains(s.image.Name, "/shop/"+name+":") })
	return scenes[i].image
}

// stage builds and signs the images, the good ones first.
func stage(yard *gatetest.Yard, people signers) ([]scene, error) {
	const vuln = "https://cosign.sigstore.dev/attestation/vuln/v1"
	web := yard.Build("shop/web", "v1", "web")
	api := yard.Build("shop/api", "v1", "api")
	worker := yard.Build("shop/worker", "v1", "worker")
	db := yard.Build("shop/db", "v1", "db")
	cart := yard.Build("shop/cart", "v1", "cart")
	mail := yard.Build("shop/mail", "v1", "mail")
	search := yard.Build("shop/search", "v1", "search")
	blog := yard.Build("shop/blog", "v1", "blog, as it was signed")
	hotfix := yard.Build("shop/hotfix", "v1", "hotfix")
	unreachable := api
	unreachable.Name = nowhere + "/shop/api:v1"
	byWebTeam := verifytest.Claim{Signer: people.webTeam, NoLog: true}
	for _, step := range []func() error{
		func() error { return yard.SignLegacy(web, byWebTeam, nil) },
		func() error { return yard.SignBundle(api, byWebTeam, nil) },
		func() error { return yard.SignBundle(worker, verifytest.Claim{Signer: people.workflow}, nil) },
		func() error { return yard.SignNotation(db, people.notary, verifytest.Notation{}) },
		func() error {
			return yard.SignLegacy(mail, verifytest.Claim{Signer: people.stranger, NoLog: true}, nil)
		},
		func() error {
			return yard.AttestBundle(search, verifytest.Claim{Signer: people.securityTeam, NoLog: true}, vuln, findings(3))
		},
		func() error { return yard.SignBundle(blog, byWebTeam, nil) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	yard.Build("shop/blog", "v1", "blog, as somebody changed it")
	return []scene{
		{web, "signed by key, as cosign 2 does", gate.Allow},
		{api, "signed by key, in a Sigstore bundle", gate.Allow},
		{worker, "signed without a key, by its workflow", gate.Allow},
		{db, "signed by notation", gate.Allow},
		{cart, "not signed", gate.Deny},
		{mail, "signed with another key", gate.Deny},
		{search, "scanned, with three critical findings", gate.Deny},
		{blog, "signed, and then the tag was moved", gate.Deny},
		{hotfix, "not signed, and allowed by an override", gate.Allow},
		{unreachable, "in a registry that does not answer", gate.Error},
	}, nil
}

func findings(critical int) map[string]any {
	return map[string]any{
		"scanner":  map[string]any{"uri": "scanner.example/v2", "result": map[string]any{"critical": critical}},
		"metadata": map[string]any{"scanFinishedOn": time.Now().UTC().Format(time.RFC3339)},
	}
}

// writeDemo writes a user's files: policies, the ConfigMap with keys that they name, and the
// trusted root.
func writeDemo(folder string, sigstore *verifytest.Sigstore, people signers, hotfix string) error {
	policies, err := demo.Policies.ReadDir(".")
	if err != nil {
		return err
	}
	for _, entry := range policies {
		content, err := demo.Policies.ReadFile(entry.Name())
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(folder, "policies"), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "policies", entry.Name()), content, 0o600); err != nil {
			return err
		}
	}
	keys := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: keys\n  namespace: quaymaster-demo\ndata:\n%s%s%s",
		block("webTeam", people.webTeam.PublicPEM()), block("securityTeam", people.securityTeam.PublicPEM()), block("companyCA", people.notary.RootPEM()))
	override := fmt.Sprintf("apiVersion: quaymaster.dev/v1alpha1\nkind: ImageOverride\nmetadata: {name: hotfix}\nspec:\n  effect: Allow\n"+
		"  reason: the signing service is down\n  expires: %q\n  match: {digests: [%q]}\n", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), hotfix)
	for name, content := range map[string][]byte{
		"policies/override.yaml": []byte(override), "keys.yaml": []byte(keys),
		"trusted_root.json": sigstore.TrustedRoot(), "web-team.pub": people.webTeam.PublicPEM(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// block writes a YAML block of text under a key.
func block(key string, text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + key + ": |\n    " + strings.Join(lines, "\n    ") + "\n"
}

func judgeScenes(ctx context.Context, t command.Terminal, folder string, scenes []scene) ([]gate.Outcome, error) {
	inputs := demoSetup(folder)
	requests := make([]gate.Request, len(scenes))
	for i, s := range scenes {
		var err error
		requests[i], err = gate.ForImage(s.image.Name, "default")
		if err != nil {
			return nil, err
		}
	}
	wired, err := inputs.NewEngine(ctx, t, &authority.Flags{}, requests)
	if err != nil {
		return nil, err
	}
	return wired.Gate.DecideAll(ctx, requests, nil), nil
}

func demoSetup(folder string) *setup.Flags {
	return &setup.Flags{
		Policies:    []string{filepath.Join(folder, "policies")},
		Resources:   []string{filepath.Join(folder, "keys.yaml")},
		TrustedRoot: filepath.Join(folder, "trusted_root.json"),
		Timeout:     10 * time.Second,
	}
}

// asExpected fails the demo if a verdict differs from the expected one.
func asExpected(scenes []scene, outcomes []gate.Outcome) error {
	for i, s := range scenes {
		if outcomes[i].Result != s.want {
			return fmt.Errorf("%s (%s): %s, and %s was expected", s.image.Name, s.story, outcomes[i].Result, s.want)
		}
	}
	return nil
}

// tryAgain returns the command that explains one verdict of the demo. The command works only
// while the demo is kept.
func tryAgain(folder string, keep bool) func(report.Record, report.Image) string {
	if !keep {
		return nil
	}
	return func(_ report.Record, image report.Image) string {
		return fmt.Sprintf("quaymaster explain %s %s", demoFlags(folder), engine.Quote(image.Written))
	}
}

func demoFlags(folder string) string {
	return fmt.Sprintf("--policy %[1]s/policies --resource %[1]s/keys.yaml --trusted-root %[1]s/trusted_root.json", folder)
}

// serveUntilEnd keeps the registry running and prints commands to try.
func serveUntilEnd(ctx context.Context, out io.Writer, folder, dashboard string, scenes []scene) error {
	fmt.Fprintf(out, `
The registry and the gateway stay up until you interrupt them (Ctrl-C). In another
terminal:

  quaymaster verify --key %[1]s/web-team.pub --insecure-ignore-tlog %[2]s
  quaymaster verify %[3]s %[4]s
  quaymaster explain %[3]s %[4]s
  quaymaster serve --config %[1]s/gateway.yaml

Dashboard: %[5]s
Playground, to try policies: %[5]splayground/
`, folder, imageOf(scenes, "web").Name, demoFlags(folder), imageOf(scenes, "search").Name, dashboard)
	<-ctx.Done()
	return nil
}

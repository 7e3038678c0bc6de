package verify

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/vsa"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/kms"
)

// CosignPassword is the variable that holds the password of cosign's private keys.
const CosignPassword = "COSIGN_PASSWORD"

// vsaFlags configure verification summaries.
type vsaFlags struct {
	verifier, policy string
	keyName          string
	push             bool
	repository       string

	key vsa.Key // nil: they are not signed
}

func (f *vsaFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.verifier, "vsa-verifier-id", "", "`URI` of the verifier, for -o vsa")
	flags.StringVar(&f.policy, "vsa-policy-uri", "", "`URI` of the policies, for -o vsa (default urn:quaymaster:policies)")
	flags.StringVar(&f.keyName, "vsa-key", "", "private key `file` or KMS URI that signs summaries (cosign keys: COSIGN_PASSWORD)")
	flags.BoolVar(&f.push, "vsa-push", false, "store signed verification summaries in the registry, as referrers of their images")
	flags.StringVar(&f.repository, "vsa-repository", "", "`repository` for stored summaries (default: the image's own)")
}

// prepare refuses conflicting flags and flags without effect, and reads the key, before any work
// is done.
func (f *vsaFlags) prepare(cmd *cobra.Command, t command.Terminal, outputs *output.Flags, inputs *setup.Flags) error {
	if !outputs.Has(output.VSA) {
		for _, name := range []string{"vsa-verifier-id", "vsa-policy-uri", "vsa-key", "vsa-push", "vsa-repository"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s says how verification summaries are made: ask for them with -o vsa=PATH", name)
			}
		}
		return nil
	}
	if f.verifier == "" {
		return errors.New("-o vsa: set --vsa-verifier-id, a URI such as https://ci.example/verifier")
	}
	by := f.by(t.Version(), time.Now())
	if _, _, err := (vsa.Verifier{ID: by.ID, Release: by.Release, Time: by.Time}).Summaries(nil); err != nil {
		return fmt.Errorf("-o vsa: --vsa-verifier-id: %w", err)
	}
	if _, _, err := by.Summaries(nil); err != nil {
		return fmt.Errorf("-o vsa: --vsa-policy-uri: %w", err)
	}
	switch {
	case f.push && f.keyName == "":
		return errors.New("--vsa-push: a verification summary that nobody signed proves nothing; sign it with --vsa-key")
	case f.push && len(inputs.Layouts) > 0:
		return errors.New("--vsa-push stores in registries, and --oci-layout asks none")
	case f.repository != "" && !f.push:
		return errors.New("--vsa-repository says where --vsa-push stores")
	case f.keyName == "" && cmd.Flags().Changed("vsa-key"):
		return errors.New("--vsa-key is empty; a variable may be unset")
	case f.keyName == "":
		return nil
	case trust.IsLookup(f.keyName) && inputs.Offline:
		return errors.New("--vsa-key asks a key management service, and --offline opens no connection")
	}
	var err error
	f.key, err = privateKey(f.keyName, t.Env(CosignPassword))
	return err
}

// privateKey reads a key file; a KMS signs with its own key later.
func privateKey(name, password string) (vsa.Key, error) {
	if trust.IsLookup(name) {
		return serviceKey(name), nil
	}
	text, err := limit.ReadFile(name, limit.MaxKeyFile, "the private key")
	if err != nil {
		return nil, fmt.Errorf("--vsa-key %s: %w", name, err)
	}
	key, err := vsa.ParseKey(text, []byte(password))
	if err != nil && password == "" {
		return nil, fmt.Errorf("--vsa-key %s: %w (%s is not set)", name, err, CosignPassword)
	} else if err != nil {
		return nil, fmt.Errorf("--vsa-key %s: %w", name, err)
	}
	return key, nil
}

// serviceKey is the URI of a key in a key management service.
type serviceKey string

// Sign implements vsa.Key.
func (k serviceKey) Sign(ctx context.Context, message []byte) ([]byte, crypto.PublicKey, error) {
	return kms.Providers{}.Sign(ctx, string(k), message)
}

// by is the verifier in the summaries.
func (f *vsaFlags) by(release string, now time.Time) vsa.Verifier {
	return vsa.Verifier{ID: f.verifier, Policy: f.policy, Release: release, Time: now}
}

// writer returns a function that writes the summaries of outcomes, one per line, and stores
// them if requested. It reports images without a summary on standard error.
func (f *vsaFlags) writer(ctx context.Context, t command.Terminal, inputs *setup.Flags) func([]gate.Outcome, io.Writer) error {
	return func(outcomes []gate.Outcome, w io.Writer) error {
		summaries, left, err := f.by(t.Version(), time.Now()).Summaries(outcomes)
		if err != nil {
			return err
		}
		for _, one := range left {
			fmt.Fprintf(t.Err, "quaymaster: no verification summary of %s: %s\n", report.Escape(one.Image), report.Escape(one.Why))
		}
		ctx, cancel := context.WithTimeout(ctx, inputs.Timeout)
		defer cancel()
		lines, err := f.lines(ctx, summaries)
		if err == nil {
			for _, line := range lines {
				if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
					return err
				}
			}
			if f.push {
				err = f.store(ctx, t, inputs, summaries, lines)
			}
		}
		if err != nil {
			fmt.Fprintf(t.Err, "quaymaster: -o vsa: %v\n", err)
			return command.Status(command.ExitError)
		}
		return nil
	}
}

// lines are the summaries, signed if there is a key.
func (f *vsaFlags) lines(ctx context.Context, summaries []vsa.Summary) ([][]byte, error) {
	lines := make([][]byte, len(summaries))
	for i := range summaries {
		var err error
		if f.key == nil {
			lines[i], err = summaries[i].Statement()
		} else {
			lines[i], err = summaries[i].Sign(ctx, f.key)
		}
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// store pushes signed summaries.
func (f *vsaFlags) store(ctx context.Context, t command.Terminal, inputs *setup.Flags, summaries []vsa.Summary, signed [][]byte) error {
	client, err := inputs.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	var errs []error
	for i := range summaries {
		where, err := f.storeOne(ctx, client, &summaries[i], bytes.Clone(signed[i]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(t.Err, "quaymaster: the verification summary of %s is %s\n", summaries[i].Image, where)
	}
	return errors.Join(errs...)
}

func (f *vsaFlags) storeOne(ctx context.Context, client *registry.Client, summary *vsa.Summary, signed []byte) (string, error) {
	described, err := client.Describe(ctx, summary.Image)
	if err != nil {
		return "", err
	}
	repository := summary.Image.Repository()
	if f.repository != "" {
		repository, err = image.ParseRepository(f.repository)
		if err != nil {
			return "", fmt.Errorf("--vsa-repository: %w", err)
		}
	}
	manifest, err := client.Push(ctx, repository, vsa.Artifact(signed, described.Descriptor()))
	if err != nil {
		return "", err
	}
	return repository.String() + "@" + manifest.Digest.String(), nil
}

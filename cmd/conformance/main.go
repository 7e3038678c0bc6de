// Command conformance implements the client protocol of the sigstore-conformance suite
// (https://github.com/sigstore/sigstore-conformance). The suite thereby tests the bundle
// verifier that the gateway uses:
//
//	conformance verify-bundle [--staging] --bundle FILE
//	    (--certificate-identity IDENTITY --certificate-oidc-issuer URL | --key PEM)
//	    [--trusted-root FILE] FILE_OR_DIGEST
//
// It exits with 0 if the bundle is verified, with 1 if it is not or could not be verified, and
// with 2 for wrong use. Signing is not part of the gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tuf"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Exit statuses.
const (
	exitProved  = 0
	exitRefused = 1
	exitUsage   = 2
)

// maxArtifact bounds the artifact in bytes; the suite's have a few kilobytes.
const maxArtifact = 256 << 20

// fetchTimeout bounds the one refresh that --staging needs.
const fetchTimeout = time.Minute

const usage = `usage: conformance verify-bundle [--staging] --bundle FILE
    (--certificate-identity IDENTITY --certificate-oidc-issuer URL | --key PEM)
    [--trusted-root FILE] FILE_OR_DIGEST`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	request, err := parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "conformance: %v\n%s\n", err, usage)
		return exitUsage
	}
	if err := request.verify(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitRefused
	}
	return exitProved
}

// request is a parsed command line.
type request struct {
	staging                                     bool
	bundle, identity, issuer, key, root, target string
}

func parse(args []string) (request, error) {
	if len(args) == 0 || args[0] != "verify-bundle" {
		return request{}, errors.New("the only command is verify-bundle")
	}
	var r request
	flags := flag.NewFlagSet("verify-bundle", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&r.staging, "staging", false, "")
	flags.StringVar(&r.bundle, "bundle", "", "")
	flags.StringVar(&r.identity, "certificate-identity", "", "")
	flags.StringVar(&r.issuer, "certificate-oidc-issuer", "", "")
	flags.StringVar(&r.key, "key", "", "")
	flags.StringVar(&r.root, "trusted-root", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return request{}, err
	}
	byIdentity := r.identity != "" && r.issuer != ""
	switch {
	case flags.NArg() != 1:
		return request{}, fmt.Errorf("want one artifact or digest, got %d", flags.NArg())
	case r.bundle == "":
		return request{}, errors.New("want --bundle")
	case byIdentity == (r.key != "") || (r.identity != "") != (r.issuer != ""):
		return request{}, errors.New("want either --key, or --certificate-identity and --certificate-oidc-issuer")
	}
	r.target = flags.Arg(0)
	return r, nil
}

func (r request) verify(ctx context.Context) error {
	payload, err := readFile(r.bundle, bundle.MaxBundle)
	if err != nil {
		return err
	}
	artifact, err := r.artifact()
	if err != nil {
		return err
	}
	authority, err := r.authority()
	if err != nil {
		return err
	}
	snapshot, err := r.snapshot(ctx)
	if err != nil {
		return err
	}
	_, err = bundle.New(snapshot).Prove(ctx, artifact, payload, authority)
	return err
}

// artifact reads the target: the file of that name if it exists, else a digest.
func (r request) artifact() (bundle.Artifact, error) {
	_, missing := os.Stat(r.target)
	if missing != nil && strings.Contains(r.target, ":") {
		digest, err := image.ParseDigest(r.target)
		return bundle.Artifact{Digest: digest}, err
	}
	content, err := readFile(r.target, maxArtifact)
	if err != nil {
		return bundle.Artifact{}, err
	}
	return bundle.Artifact{Digest: image.DigestOf(content), Content: content}, nil
}

func (r request) authority() (verify.Authority, error) {
	authority := verify.Authority{Name: "command line"}
	if r.key != "" {
		pem, err := readFile(r.key, trust.MaxPEM)
		if err != nil {
			return verify.Authority{}, err
		}
		authority.Key = &verify.Key{PEM: pem}
	} else {
		authority.Keyless = &verify.Keyless{Identities: []verify.Identity{{
			Issuer: verify.Exactly(r.issuer), Subject: verify.Exactly(r.identity),
		}}}
	}
	if r.root == "" {
		return authority, nil
	}
	text, err := readFile(r.root, trust.MaxRoot)
	if err != nil {
		return verify.Authority{}, err
	}
	authority.TrustedRoot = text
	// The suite lets the trusted root decide whether a transparency log exists.
	parsed, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return verify.Authority{}, fmt.Errorf("trusted root %s: %w", r.root, err)
	}
	authority.Log.Ignore = len(parsed.RekorLogs()) == 0
	return authority, nil
}

// snapshot is the embedded public-good root, or staging's, which is fetched.
func (r request) snapshot(ctx context.Context) (*trust.Snapshot, error) {
	options := trust.Options{}
	if r.staging && r.root == "" {
		options.TUF = &trust.TUF{
			URL: tuf.StagingMirror, Root: tuf.StagingRoot(), Client: &http.Client{Timeout: fetchTimeout},
		}
	}
	store, err := trust.New(options)
	if err != nil {
		return nil, err
	}
	if options.TUF != nil {
		if err := store.RefreshOnce(ctx); err != nil {
			return nil, err
		}
	}
	return store.Snapshot(), nil
}

// readFile reads a file of at most most bytes.
func readFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%s has more than the bound of %d bytes", path, most)
	}
	return content, nil
}

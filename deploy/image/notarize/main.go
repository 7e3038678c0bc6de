// Notarize signs an artifact in a registry in the same way as the notation program, with a key and
// certificates from files:
//
//	notarize --key key.pem --chain chain.pem REPOSITORY@DIGEST
//
// The signature is a JWS envelope of the Notary Project's signature specification 1.1
// (https://github.com/notaryproject/specifications), pushed as a referrer. This program uses
// notation's library, because notation itself is not a Go module that can be built.
package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "notarize:", err)
		os.Exit(1) //nolint:forbidigo // a command, though not under cmd
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("notarize", flag.ContinueOnError)
	keyFile := flags.String("key", "", "PEM file of the private key, PKCS #8")
	chainFile := flags.String("chain", "", "PEM file of its certificate and those it leads to, the root last")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *keyFile == "" || *chainFile == "" {
		return errors.New("want --key FILE --chain FILE REPOSITORY@DIGEST")
	}
	by, err := read(*keyFile, *chainFile)
	if err != nil {
		return err
	}
	repository, err := open(flags.Arg(0))
	if err != nil {
		return err
	}
	if _, err := notation.Sign(ctx, by, notationregistry.NewRepository(repository), notation.SignOptions{
		SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: "application/jose+json"},
		ArtifactReference: flags.Arg(0),
	}); err != nil {
		return fmt.Errorf("sign %s: %w", flags.Arg(0), err)
	}
	return nil
}

// open rejects references without a digest: a tag can change between build and signature.
func open(artifact string) (*remote.Repository, error) {
	reference, err := registry.ParseReference(artifact)
	if err != nil {
		return nil, err
	}
	if _, err := reference.Digest(); err != nil {
		return nil, fmt.Errorf("%s: want a digest, as in REPOSITORY@sha256:...: %w", artifact, err)
	}
	repository, err := remote.NewRepository(artifact)
	if err != nil {
		return nil, err
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the credentials of docker login: %w", err)
	}
	host, _, err := net.SplitHostPort(reference.Registry)
	repository.PlainHTTP = err == nil && net.ParseIP(host).IsLoopback()
	repository.Client = &auth.Client{Credential: credentials.Credential(store), Cache: auth.NewCache()}
	return repository, nil
}

func read(keyFile, chainFile string) (notation.Signer, error) {
	content, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM", keyFile)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key of %s: want PKCS #8", keyFile)
	}
	chain, err := certificates(chainFile)
	if err != nil {
		return nil, err
	}
	return signer.NewGenericSigner(key, chain)
}

func certificates(file string) ([]*x509.Certificate, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var chain []*x509.Certificate
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return chain, nil
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		chain = append(chain, c)
	}
}

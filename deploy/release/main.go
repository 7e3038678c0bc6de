// Release writes package manager manifests and the provenance of a release:
//
//	go run ./deploy/release krew --version v1.2.3 --checksums dist/SHA256SUMS
//	go run ./deploy/release formula --version v1.2.3 --checksums dist/SHA256SUMS
//	go run ./deploy/release provenance
//
// The first is the manifest of a kubectl plugin (krew.googlecontainertools.github.com/ v1alpha2),
// the second a Homebrew formula, both from the checksums of the archives. The third is the
// predicate of SLSA provenance v1 (https://slsa.dev/spec/v1.0/provenance) of a run of GitHub
// Actions, from the environment of that run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:forbidigo // a command, though not under cmd
	}
}

func run(args []string, out io.Writer, env func(string) string) error {
	if len(args) == 0 {
		return errors.New("want krew, formula or provenance")
	}
	if args[0] == "provenance" {
		return provenance(out, env)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "release, such as v1.2.3")
	file := flags.String("checksums", "", "file of SHA256SUMS")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	sums, err := os.Open(*file)
	if err != nil {
		return fmt.Errorf("--checksums: %w", err)
	}
	defer func() { _ = sums.Close() }() // read only: no data can be lost
	release, err := read(*version, sums)
	if err != nil {
		return err
	}
	switch args[0] {
	case "krew":
		return release.write(out, "krew.yaml")
	case "formula":
		return release.write(out, "formula.rb")
	default:
		return fmt.Errorf("%q: want krew, formula or provenance", args[0])
	}
}

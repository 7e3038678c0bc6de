// Image builds the container images of a release, without a container engine:
//
//	go run . --version v1.2.3 --output DIR      an OCI image layout a program
//	go run . --version v1.2.3 --push REGISTRY   and pushed, by digest
//	go run . --from DIR --push REGISTRY         pushed as it was built
//	go run . --version v1.2.3 --compile DIR     the programs alone, as --binaries reads them
//	go run . --chart FILE.tgz --push REGISTRY   a packaged Helm chart, pushed by digest
//
// Package compose documents their contents. Equal sources, equal flags and one release of Go give
// equal digests. It prints a line for each image: its program, and the image by digest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quaymaster/quaymaster/deploy/image/chart"
	"github.com/quaymaster/quaymaster/deploy/image/compose"
)

// titles holds the description of each program's image.
var titles = map[string]string{
	"quaymaster":      "Decides which container images may run, by their signatures and attestations",
	"quaymaster-node": "Asks a Quaymaster gateway before a node pulls an image",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Getenv)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1) //nolint:forbidigo // a command, though not under cmd
	}
}

// settings are the flags.
type settings struct {
	programs, platforms         []string
	version, revision           string
	source, binaries, from      string
	output, push, compileTo     string
	chart, goCommand            string
	created                     time.Time
	programsGiven, platformList string
}

func parse(args []string, env func(string) string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&s.programsGiven, "program", "quaymaster,quaymaster-node", "programs, each an image")
	flags.StringVar(&s.platformList, "platform", "linux/amd64,linux/arm64", "platforms")
	flags.StringVar(&s.version, "version", "", "release, such as v1.2.3")
	flags.StringVar(&s.revision, "revision", "", "commit that is built")
	flags.StringVar(&s.source, "source", filepath.Join("..", ".."), "folder of the sources")
	flags.StringVar(&s.binaries, "binaries", "", "folder of PROGRAM_OS_ARCHITECTURE, in place of building")
	flags.StringVar(&s.from, "from", "", "folder that --output wrote, in place of building")
	flags.StringVar(&s.output, "output", "", "folder to write PROGRAM (a layout) and PROGRAM.spdx.json into")
	flags.StringVar(&s.compileTo, "compile", "", "folder to build PROGRAM_OS_ARCHITECTURE into, and no images")
	flags.StringVar(&s.chart, "chart", "", "packaged Helm chart to push in place of images")
	flags.StringVar(&s.push, "push", "", "registry and path to push to: the program's name comes below it")
	flags.StringVar(&s.goCommand, "go", "go", "go command that builds")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	s.programs, s.platforms = strings.Split(s.programsGiven, ","), strings.Split(s.platformList, ",")
	for _, program := range s.programs {
		if titles[program] == "" {
			return nil, fmt.Errorf("--program %s: there is no such image", program)
		}
	}
	seconds := int64(0)
	if epoch := env("SOURCE_DATE_EPOCH"); epoch != "" {
		var err error
		seconds, err = strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", epoch)
		}
	}
	s.created = time.Unix(seconds, 0).UTC()
	return s, s.check(flags.Args())
}

func (s *settings) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag", rest[0])
	case s.chart != "" && (s.push == "" || s.from != "" || s.output != "" || s.compileTo != ""):
		return errors.New("--chart is pushed, and nothing else is done: want --chart FILE --push REGISTRY")
	case s.chart != "":
		return nil
	case s.compileTo != "" && (s.output != "" || s.push != "" || s.from != "" || s.binaries != ""):
		return errors.New("--compile makes no images: --output, --push, --from and --binaries have no say in it")
	case s.output == "" && s.push == "" && s.compileTo == "":
		return errors.New("nothing to do: --output DIR writes, --push REGISTRY pushes, --compile DIR builds programs")
	case s.from != "" && (s.output != "" || s.binaries != "" || s.version != ""):
		return errors.New("--from pushes what was built: --output, --binaries and --version have no say in it")
	case s.from == "" && s.version == "":
		return errors.New("--version is required: that of the images, such as v0.0.0-dev for a trial")
	}
	return nil
}

func run(ctx context.Context, args []string, out io.Writer, env func(string) string) error {
	s, err := parse(args, env)
	if err != nil {
		return err
	}
	switch {
	case s.chart != "":
		pushed, err := chart.Push(ctx, s.chart, s.push)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, pushed)
		return nil
	case s.compileTo != "":
		return s.compileAll(ctx, out)
	default:
		return s.images(ctx, out)
	}
}

func (s *settings) compileAll(ctx context.Context, out io.Writer) error {
	for _, program := range s.programs {
		for _, platform := range s.platforms {
			file := filepath.Join(s.compileTo, fileName(program, platform))
			if err := s.compile(ctx, program, platform, file); err != nil {
				return err
			}
			fmt.Fprintln(out, file)
		}
	}
	return nil
}

func (s *settings) images(ctx context.Context, out io.Writer) error {
	folder := s.from
	if folder == "" {
		folder = s.output
	}
	if folder == "" {
		made, err := os.MkdirTemp("", "image-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }() // the images are in the registry
		folder = made
	}
	for _, program := range s.programs {
		said, err := s.image(ctx, program, folder)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, program, said)
	}
	return nil
}

// image builds and pushes one image, depending on the flags. It returns its digest or, once pushed,
// its name by digest.
func (s *settings) image(ctx context.Context, program, folder string) (said string, err error) {
	if s.from == "" {
		said, err = s.build(ctx, program, folder)
		if err != nil {
			return "", err
		}
	}
	if s.push == "" {
		return said, nil
	}
	return compose.Push(ctx, filepath.Join(folder, program), strings.TrimSuffix(s.push, "/")+"/"+program)
}

// fileName returns the file name of a program for a platform in a folder of programs.
func fileName(program, platform string) string {
	return program + "_" + strings.ReplaceAll(platform, "/", "_")
}

// build makes the image of a program below a folder, and returns its digest.
func (s *settings) build(ctx context.Context, program, folder string) (string, error) {
	layout := filepath.Join(folder, program)
	if entries, err := os.ReadDir(layout); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s is there already: remove it, or name another folder", layout)
	}
	binaries, remove, err := s.collect(ctx, program)
	if err != nil {
		return "", err
	}
	defer remove()
	image, err := compose.New(compose.Description{
		Program: program, Title: titles[program], Version: s.version, Revision: s.revision, Created: s.created,
	}, binaries)
	if err != nil {
		return "", err
	}
	if err := image.Write(layout); err != nil {
		return "", err
	}
	if err := os.WriteFile(layout+".spdx.json", image.Bill(), 0o644); err != nil {
		return "", err
	}
	digest, err := image.Digest()
	return digest.String(), err
}

// collect finds or builds a program for all platforms. Built files exist until remove.
func (s *settings) collect(ctx context.Context, program string) (found []compose.Binary, remove func(), err error) {
	folder, remove := s.binaries, func() {}
	if folder == "" {
		folder, err = os.MkdirTemp("", "image-")
		if err != nil {
			return nil, nil, err
		}
		remove = func() { _ = os.RemoveAll(folder) } // temporary files: a leftover is harmless
	}
	for _, platform := range slices.Sorted(slices.Values(s.platforms)) {
		file := filepath.Join(folder, fileName(program, platform))
		if s.binaries == "" {
			if err := s.compile(ctx, program, platform, file); err != nil {
				remove()
				return nil, nil, err
			}
		}
		found = append(found, compose.Binary{Platform: platform, File: file})
	}
	return found, remove, nil
}

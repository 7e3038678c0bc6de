package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// compile builds a program for a platform as a file. For a reproducible build it fixes every input
// other than the source: the folder (-trimpath), the state of the checkout (-buildvcs), and the
// variables that select processor features.
func (s *settings) compile(ctx context.Context, program, platform, file string) error {
	system, architecture, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q: want linux/ARCHITECTURE", platform)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, s.goCommand, "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags=-s -w -buildid= -X main.version="+s.version, "-o", file, "./cmd/"+program)
	build.Dir = s.source
	build.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", program, platform, err, output)
	}
	return nil
}

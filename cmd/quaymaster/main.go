// Quaymaster, on the command line, decides whether an image may run, and under which exact name.
// This package holds flags, configuration, wiring and exit statuses; package gate makes the
// decisions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/apply"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/bundle"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/convert"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/demo"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/log"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/mirror"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/node"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/scan"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/serve"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/test"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/verify"
)

// version is set by the linker in releases.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], command.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Release: version})
	stop()
	os.Exit(status)
}

// run executes one command line. A panic is an exit status too, and never 0.
func run(ctx context.Context, args []string, t command.Terminal) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(t.Err, "quaymaster: internal error: %v\n%s", p, debug.Stack())
			code = command.ExitError
		}
	}()
	if imageverifier.IsAsked(args) {
		return node.Verify(ctx, args, t.In, t.Out, t.Err)
	}
	root := rootCommand(t)
	root.SetArgs(args)
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.Err)
	err := root.ExecuteContext(ctx)
	if said, ok := errors.AsType[command.Status](err); ok {
		return int(said)
	}
	if err != nil {
		fmt.Fprintf(t.Err, "quaymaster: %v\n", err)
		return command.ExitUsage
	}
	return command.ExitAllowed
}

func rootCommand(t command.Terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "quaymaster",
		Short: "Verify container images against policies",
		Long: `Quaymaster decides which container images may run: it resolves an image to a
digest, verifies signatures and attestations of that digest (cosign, Sigstore
bundles, notation), and evaluates your existing policies.

Try it without any setup:

  quaymaster demo`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       t.Version(),
		Args:          usage.NoArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	usage.Adapt(root)
	root.AddCommand(verify.New(t), verify.NewExplain(t), apply.New(t), scan.New(t), test.New(t), mirror.New(t), bundle.New(t),
		convert.New(t), serve.New(t), log.New(t), demo.New(t), versionCommand(t))
	root.SetOut(t.Out) // the completion command writes to the output that is set when it is made
	usage.AdaptErrors(root)
	return root
}

func versionCommand(t command.Terminal) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usage.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(t.Out, "quaymaster "+t.Version())
			return nil
		},
	}
}

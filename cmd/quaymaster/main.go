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
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/apply"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/bundle"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/cel"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/convert"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/demo"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/flagsource"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/jp"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/log"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/mirror"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/node"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/playground"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/policies"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/scan"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/serve"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/status"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/test"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/tree"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/verify"
	"github.com/quaymaster/quaymaster/report"
)

// version is set by the linker in releases.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], command.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Release: version, Program: os.Args[0]})
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
		fmt.Fprintf(t.Err, "quaymaster: %s\n", report.Escape(err.Error()))
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

  quaymaster demo

Exit status: that of the command; docs/cli.md has a table.`,
		Example: `  quaymaster demo
  quaymaster verify --key cosign.pub registry.example/app:v1
  quaymaster verify --policy policies/ -f deploy/`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       t.Version(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: t.Name()},
		Args:          usage.NoArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flagsource.Register(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		return errors.Join(applySources(cmd, t), checkContext(cmd, t, args))
	}
	usage.Adapt(root, t.Columns())
	addGroup(root, "Images", verify.New(t), verify.NewExplain(t), tree.New(t), mirror.New(t))
	addGroup(root, "Policies", policies.New(t), apply.New(t), test.New(t), convert.New(t), bundle.New(t), jp.New(t), cel.New(t), playground.New(t))
	addGroup(root, "Clusters", serve.New(t), status.New(t), status.NewDoctor(t), scan.New(t), log.New(t))
	root.AddCommand(demo.New(t), versionCommand(t))
	root.SetOut(t.Out) // the completion command writes to the output that is set when it is made
	usage.AdaptErrors(root)
	completeContexts(root, t)
	return root
}

// applySources sets the flags that the command line leaves out, and lists them: they are no part of the
// command that a log shows.
func applySources(cmd *cobra.Command, t command.Terminal) error {
	if err := flagsource.Apply(cmd, t.Env); err != nil {
		return err
	}
	for _, flag := range flagsource.Of(cmd) {
		fmt.Fprintf(t.Err, "quaymaster: --%s %s (from %s)\n", flag.Name, report.Escape(strings.Join(flag.Values, " ")), report.Escape(flag.Source))
	}
	return nil
}

// addGroup adds commands under a title of the help text.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

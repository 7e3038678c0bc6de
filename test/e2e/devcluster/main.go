// Command devcluster runs the gateway of this checkout with a Kubernetes API server, for developers and
// newcomers (make dev-cluster; docs/kind.md).
//
// The form local needs no container engine: etcd and kube-apiserver from Go modules, a registry on
// loopback and the gateway run as processes. The form kind builds the image, loads it into a cluster of
// kind or minikube, and installs the charts. Both end with a denial and an admission.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// settings are the flags.
type settings struct {
	form    string
	context string
	once    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev-cluster:", err)
		os.Exit(1) //nolint:forbidigo // a program of its own
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.StringVar(&s.form, "form", "local", "local: processes on this machine; kind: a cluster of kind or minikube")
	flags.StringVar(&s.context, "context", "", "kind: the context of the kubeconfig; required for a context of another name than kind's and minikube's")
	flags.BoolVar(&s.once, "once", false, "local: end after the demonstration")
	if err := flags.Parse(args); err != nil {
		return err
	}
	steps := &steps{out: out}
	switch s.form {
	case "local":
		return local(ctx, s, steps)
	case "kind":
		return installed(ctx, s, steps)
	}
	return fmt.Errorf("-form %q: want local or kind", s.form)
}

// steps prints progress.
type steps struct {
	out io.Writer
	n   int
}

// next announces a step.
func (s *steps) next(format string, args ...any) {
	s.n++
	_, _ = fmt.Fprintf(s.out, "%d. %s\n", s.n, fmt.Sprintf(format, args...)) // progress, for people
}

// show prints a command with its output.
func (s *steps) show(command, output string) {
	_, _ = fmt.Fprintf(s.out, "   $ %s\n%s", command, indent(output))
}

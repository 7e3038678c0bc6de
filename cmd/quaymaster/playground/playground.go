// Package playground is the command quaymaster playground: a page on loopback that evaluates policies against
// objects.
package playground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/playground"
)

const (
	// address is the default one, next to that of the dashboard.
	address = "127.0.0.1:8002"
	// maxConnections bounds the concurrent connections.
	maxConnections = 64
	// readTimeout bounds the arrival of a request.
	readTimeout = 15 * time.Second
	// writeTimeout leaves time for an evaluation and its answer.
	writeTimeout = 2 * readTimeout
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 16 << 10
	// endTimeout is the time that an evaluation in progress has when the command is interrupted.
	endTimeout = time.Second
)

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var listen string
	var remote bool
	cmd := &cobra.Command{
		Use: "playground", Short: "Try policies in a browser",
		Long: `Playground serves a page on loopback, with editors for policies, objects, parameters
and exceptions, until you interrupt it (Ctrl-C). The page shows the result of each
rule, and mutated and generated objects as a diff. Its address has the whole state:
a link reproduces it. See docs/playground.md.

An evaluation opens no connection and no file. What policies look up is among the
documents or the parameters; anything else, such as the signature of an image, could
not be verified. Time and cost are bounded as at admission.

The page has no authentication, and is for this machine. With --listen on another
address, everyone who reaches it may evaluate policies; --allow-remote confirms that.

Exit status: 0 when interrupted, 2 for wrong use or an address that is in use, 3 if
it could not serve.`,
		Example: `  quaymaster playground
  quaymaster playground --listen 127.0.0.1:9000
  quaymaster playground --listen :8002 --allow-remote`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), t, listen, remote) },
	}
	cmd.Flags().StringVar(&listen, "listen", address, "`host:port` to listen on; port 0 takes a free one")
	cmd.Flags().BoolVar(&remote, "allow-remote", false, "serve other machines, too, without authentication")
	return cmd
}

func run(ctx context.Context, t command.Terminal, listen string, remote bool) error {
	loopback, err := isLoopback(listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen %s: want host:port: %w", listen, err)
	case !loopback && !remote:
		return fmt.Errorf("--listen %s is not on loopback, and the page has no authentication: with --allow-remote everyone who reaches it may use it", listen)
	}
	offline, err := trial.NewOffline(playground.DefaultTimeout)
	if err != nil {
		return err
	}
	pages, err := playground.New(playground.Config{Evaluator: offline, AnyHost: !loopback})
	if err != nil {
		return err
	}
	opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{
		Handler: pages, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: 4 * readTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0), // clients cause its lines
	}
	fmt.Fprintf(t.Out, "Playground: http://%s/\nInterrupt it with Ctrl-C.\n", opened.Addr())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(webhook.LimitConnections(opened, maxConnections)) }()
	select {
	case err := <-ended:
		fmt.Fprintf(t.Err, "quaymaster: playground: %v\n", err)
		return command.Status(command.ExitError)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // what is in progress is lost, and nothing else
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// isLoopback reports whether only this machine can connect. Of host names, only localhost counts, because others
// depend on resolution.
func isLoopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, err
	}
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback(), nil
}

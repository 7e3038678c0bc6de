// Command programs answers: are the programs there that the suites need?
//
// A missing one is built, one after the other, so that no test waits for it within its time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/quaymaster/quaymaster/test/peers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, name := range peers.Programs(peers.IsLong()) {
		if _, err := peers.Build(ctx, name); err != nil {
			fmt.Fprintln(os.Stderr, "programs:", err)
			os.Exit(1) //nolint:forbidigo,gocritic // the exit status reports it
		}
	}
}

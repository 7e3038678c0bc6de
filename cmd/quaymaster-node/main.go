// Quaymaster-node answers, as an image verifier of containerd: may this node pull
// that image? It proves nothing itself: it asks a gateway's /api/v1/verify, and
// denies whatever it does not understand. docs/node.md says how to set it up.
package main

import (
	"context"
	"os"

	"github.com/quaymaster/quaymaster/cmd/quaymaster-node/imageverifier"
)

func main() {
	p := imageverifier.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv}
	os.Exit(imageverifier.Run(context.Background(), os.Args[1:], p, ask))
}

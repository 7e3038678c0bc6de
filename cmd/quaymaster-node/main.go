// Quaymaster-node is an image verifier of containerd: it decides whether the node may pull an
// image. It verifies nothing itself: it sends a request to a gateway's /api/v1/verify, and
// denies every response that it cannot interpret. Installation: docs/node.md.
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

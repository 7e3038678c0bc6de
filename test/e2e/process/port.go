package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports for servers are taken from below the range that Linux gives to
// outgoing connections, 32768 and up: a server that is stopped and started
// again then finds its port free, and nobody who waits for it connects to
// himself.
const firstPort, lastPort, portTries = 20000, 32000, 100

// FreeAddress returns an address of loopback that nobody listens at.
func FreeAddress(ctx context.Context) (string, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return listener.Addr().String(), listener.Close()
	}
	return "", errors.New("no free port on loopback")
}

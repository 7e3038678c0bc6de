package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports for servers are taken from below the range that Linux gives to outgoing connections,
// 32768 and up: a server that is stopped and started again then finds its port free, and no
// waiting client connects to itself.
const firstPort, lastPort, portTries = 20000, 32000, 100

// FreeAddress returns an address of loopback without a listener, which is not returned again
// while this process lives.
func FreeAddress(ctx context.Context) (string, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !reserve(ctx, port) {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return listener.Addr().String(), listener.Close()
	}
	return "", errors.New("no free port on loopback")
}

// reserve keeps the port from other callers, in this process and in others, until this one
// ends: it binds the UDP port of the same number, which no server of the suite needs.
func reserve(ctx context.Context, port int) bool {
	held, err := new(net.ListenConfig).ListenPacket(ctx, "udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	go func() { // the goroutine holds it, since nothing else refers to it
		var nothing [1]byte
		for {
			if _, _, err := held.ReadFrom(nothing[:]); errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	return true
}

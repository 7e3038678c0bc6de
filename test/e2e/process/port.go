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

// FreeAddress returns an address of loopback that nobody listens at, and that nobody
// else is given while this process lives.
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

// reserve keeps the port from others who look here for one, in this process and in
// others, until this one ends: the UDP port of the same number stands for it, which no
// server of the suite wants.
func reserve(ctx context.Context, port int) bool {
	held, err := new(net.ListenConfig).ListenPacket(ctx, "udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	go func() { // it is held by who waits at it, since nothing else refers to it
		var nothing [1]byte
		for {
			if _, _, err := held.ReadFrom(nothing[:]); errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	return true
}

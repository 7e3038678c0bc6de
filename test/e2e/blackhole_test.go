package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// unanswered is how long a connection is waited for before it counts as never made.
const unanswered = 300 * time.Millisecond

// blackHole returns an address at which connections are neither made nor refused: the
// listener's queue is full, so that the kernel drops packets.
func blackHole(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	must(t, err)
	address := fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
	dialer := net.Dialer{Timeout: unanswered}
	for range 16 {
		connection, err := dialer.DialContext(context.WithoutCancel(t.Context()), "tcp", address)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = connection.Close() })
	}
	t.Skip("the kernel completes connections beyond the listener's queue")
	return ""
}

// TestBlackHole: a target that takes no connections costs its time once.
func TestBlackHole(t *testing.T) {
	m := mirror(t, "black-hole", gateway.Configuration{})
	address := blackHole(t)
	m.enforceMirrored(t, env.Policy{Name: "black-hole", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "black-hole", m.entry("shop", map[string]any{
		"targets": []any{map[string]any{"location": address + "/" + hub}, m.at(m.near)},
	}), m.entry("probe", nil)))
	m.isRedirected(t, m.near)
	for i := range 6 {
		image := m.copied(t, fmt.Sprint("shop/hole-", i), "1.0", m.near)
		began := time.Now()
		got, err := m.dryRun(t.Context(), pod("hole", image.Name))
		took := time.Since(began)
		must(t, err)
		if !slices.Equal(images(got), []string{exact(m.near, image)}) {
			t.Errorf("pod %d has %v, want the second target's", i, images(got))
		}
		limit := brisk
		if i == 0 {
			limit += targetTime
		}
		if took > limit {
			t.Errorf("pod %d took %s, want at most %s", i, took, limit)
		}
	}
}

// TestRestingTargetIsNotAskedForEvidence: an unresponsive target does not use up the time of
// a request by its evidence, either: an image without a signature at its source is refused at
// once.
func TestRestingTargetIsNotAskedForEvidence(t *testing.T) {
	m := mirror(t, "resting", gateway.Configuration{})
	m.enforceMirrored(t, env.Policy{Name: "resting", Namespaces: []string{m.namespace}})
	m.redirectBy(t, document(t, "resting", m.entry("shop", map[string]any{
		"targets": []any{map[string]any{"location": blackHole(t) + "/" + hub}, m.at(m.near)},
	}), m.entry("probe", nil)))
	m.isRedirected(t, m.near)
	image := m.copied(t, "shop/web", "1.0", m.near)
	_, err := m.dryRun(t.Context(), pod("resting", image.Name)) // from now on it is known
	must(t, err)
	for i := range 2 {
		bare := m.env.Unsigned(fmt.Sprint("shop/bare-", i), "1.0")
		m.copyTo(t, bare, fmt.Sprint("shop/bare-", i), "1.0", m.near)
		began := time.Now()
		_, err := m.dryRun(t.Context(), pod("bare", bare.Name))
		took := time.Since(began)
		if err == nil || !strings.Contains(err.Error(), "denied the request") {
			t.Errorf("an unsigned image: %v, want the gateway's refusal", err)
		}
		if limit := targetTime + brisk; took > limit {
			t.Errorf("the refusal took %s, want at most %s", took, limit)
		}
	}
}

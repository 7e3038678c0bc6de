// Package dial opens connections only to permitted addresses.
//
// Names of hosts come from untrusted sources: image references, challenges, redirects. A name may
// resolve to a cloud's metadata service or to a port that only this machine should reach, and to
// another address at each look-up. So the check applies to the address of the connection, after
// resolution.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// connectTimeout bounds one connection; a host that does not accept it in this time is down.
	connectTimeout = 10 * time.Second
	// keepAlive detects dead peers of idle connections.
	keepAlive = 30 * time.Second
)

// Config selects the permitted addresses. The zero value permits public and private addresses,
// and loopback where it was requested by name.
type Config struct {
	// Loopback lists hosts (without port) that may resolve to a loopback
	// address. A host that is itself a loopback address or localhost always
	// may.
	Loopback []string
	// NoPrivate refuses private addresses (RFC 1918, RFC 6598, RFC 4193). Registries often have
	// them, so they are permitted by default.
	NoPrivate bool
	// Resolver resolves names; nil means the system's.
	Resolver *net.Resolver
}

// Dialer opens connections to permitted addresses.
type Dialer struct {
	config Config
}

// New returns a Dialer for config.
func New(config Config) *Dialer {
	config.Loopback = slices.Clone(config.Loopback)
	return &Dialer{config: config}
}

// RefusedError is the error for an address that is not permitted.
type RefusedError struct {
	Host    string // the requested host
	Address netip.Addr
	Reason  string
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s is at %s, %s, which is not connected to", r.Host, r.Address, r.Reason)
}

// DialContext connects to address ("host:port"). It fails with a *RefusedError if it connects to no
// address of the host, and one of them is refused: that the others do not answer is no reason to
// report the host as silent.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var refused atomic.Pointer[RefusedError]
	dialer := net.Dialer{
		Timeout:   connectTimeout,
		KeepAlive: keepAlive,
		Resolver:  d.config.Resolver,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			err := d.check(host, resolved)
			if one, ok := errors.AsType[*RefusedError](err); ok {
				refused.Store(one)
			}
			return err
		},
	}
	connection, err := dialer.DialContext(ctx, network, address)
	if one := refused.Load(); err != nil && one != nil {
		return nil, one
	}
	return connection, err
}

// check runs for each address immediately before the connection.
func (d *Dialer) check(host, resolved string) error {
	target, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%s resolved to %q, which is no address: %w", host, resolved, err)
	}
	address := target.Addr()
	if reason := d.refuse(host, address); reason != "" {
		return &RefusedError{Host: host, Address: address, Reason: reason}
	}
	return nil
}

func (d *Dialer) refuse(host string, address netip.Addr) string {
	address = embedded(address.WithZone(""))
	switch {
	case !address.IsValid() || address.IsUnspecified() || zeroNet.Contains(address):
		return "an unspecified address"
	case slices.Contains(metadata, address):
		return "a cloud metadata service"
	case address.IsLinkLocalUnicast() || address.IsLinkLocalMulticast():
		return "a link-local address"
	case address.IsMulticast() || address == broadcast:
		return "a multicast address"
	case address.IsLoopback():
		if IsLoopbackHost(host) || slices.Contains(d.config.Loopback, strings.ToLower(host)) {
			return ""
		}
		return "a loopback address that was not asked for"
	case d.config.NoPrivate && (address.IsPrivate() || sharedSpace.Contains(address)):
		return "a private address"
	}
	return ""
}

// IsLoopbackHost reports whether host (without port) is by its own name this machine: localhost
// or a loopback address. It does not resolve.
func IsLoopbackHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && embedded(address.WithZone("")).IsLoopback()
}

var (
	// metadata are the addresses of the clouds' metadata services.
	metadata = []netip.Addr{
		netip.MustParseAddr("169.254.169.254"), // most
		netip.MustParseAddr("fd00:ec2::254"),   // Amazon, IPv6
		netip.MustParseAddr("fd20:ce::254"),    // Google, IPv6
		netip.MustParseAddr("100.100.100.200"), // Alibaba
		netip.MustParseAddr("168.63.129.16"),   // Azure
		netip.MustParseAddr("192.0.0.192"),     // Oracle
	}
	broadcast   = netip.MustParseAddr("255.255.255.255")
	zeroNet     = netip.MustParsePrefix("0.0.0.0/8")     // "this network", RFC 1122
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	nat64       = netip.MustParsePrefix("64:ff9b::/96")  // RFC 6052
	sixToFour   = netip.MustParsePrefix("2002::/16")     // RFC 3056
)

// embedded returns the IPv4 address that an IPv6 address embeds, so that the checks apply to it;
// any other address is returned unchanged.
func embedded(address netip.Addr) netip.Addr {
	address = address.Unmap()
	bytes := address.As16()
	switch {
	case address.Is6() && nat64.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[12:16]))
	case address.Is6() && sixToFour.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	return address
}

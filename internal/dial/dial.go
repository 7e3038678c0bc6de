// Package dial answers: may a connection go to this address?
//
// The names that this product connects to are written by others: in image
// references, in challenges, in redirects. A name may point to a cloud's
// metadata service or to a port that only this machine should reach, and may
// point elsewhere at each look. So the check is made on the address that is
// about to be connected to, after resolution.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// connectTimeout bounds one connection; a host that does not answer in this
	// time is down.
	connectTimeout = 10 * time.Second
	// keepAlive notices dead peers of idle connections.
	keepAlive = 30 * time.Second
)

// Config says what may be reached. The zero value reaches public and private
// addresses, and loopback where it was asked for by name.
type Config struct {
	// Loopback lists hosts (without port) that may resolve to a loopback
	// address. A host that is itself a loopback address or localhost always
	// may.
	Loopback []string
	// NoPrivate refuses private addresses (RFC 1918, RFC 6598, RFC 4193).
	// Registries live there, so they are allowed by default.
	NoPrivate bool
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// Dialer opens connections to addresses that are allowed.
type Dialer struct {
	config Config
}

// New returns a Dialer for config.
func New(config Config) *Dialer {
	config.Loopback = slices.Clone(config.Loopback)
	return &Dialer{config: config}
}

// RefusedError says that an address is not to be connected to.
type RefusedError struct {
	Host    string // as it was asked for
	Address netip.Addr
	Reason  string
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s is at %s, %s, which is not connected to", r.Host, r.Address, r.Reason)
}

// DialContext connects to address ("host:port") and fails with a *RefusedError
// where its host resolves only to addresses that are not allowed.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout:   connectTimeout,
		KeepAlive: keepAlive,
		Resolver:  d.config.Resolver,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return d.check(host, resolved)
		},
	}
	return dialer.DialContext(ctx, network, address)
}

// check is called for each address just before it is connected to.
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

// IsLoopbackHost reports whether host (without port) is by its own name this
// machine: localhost or a loopback address. It does not resolve.
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

// embedded returns the IPv4 address that an IPv6 address stands for, so that
// no check is passed in disguise; any other address is returned as it is.
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

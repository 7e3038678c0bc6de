package dial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/internal/dial/dialtest"
)

func TestRefusedAddresses(t *testing.T) {
	names := map[string][]string{
		"metadata.example": {"169.254.169.254"},
		"loop.example":     {"127.0.0.1"},
		"loop6.example":    {"::1"},
		"mixed.example":    {"169.254.169.254", "127.0.0.1"},
		"private.example":  {"10.1.2.3"},
		"half.example":     {"::1", "127.0.0.1", "0.0.0.0"},
	}
	tests := []struct{ reason, host string }{
		{"a name of the metadata service", "metadata.example"},
		{"the metadata service itself", "169.254.169.254"},
		{"Amazon's over IPv6", "fd00:ec2::254"},
		{"Alibaba's", "100.100.100.200"},
		{"Azure's", "168.63.129.16"},
		{"IPv4 in IPv6", "::ffff:169.254.169.254"},
		{"IPv4 behind NAT64", "64:ff9b::a9fe:a9fe"},
		{"IPv4 in 6to4", "2002:a9fe:a9fe::1"},
		{"link-local IPv6", "fe80::1%lo"},
		{"a name that is loopback in secret", "loop.example"},
		{"the same over IPv6", "loop6.example"},
		{"only bad addresses", "mixed.example"},
		{"a bad address, and others that do not answer", "half.example"},
		{"unspecified", "0.0.0.0"},
		{"unspecified IPv6", "::"},
		{"this network", "0.1.2.3"},
		{"multicast", "224.0.0.1"},
		{"broadcast", "255.255.255.255"},
		{"private, when that is refused", "private.example"},
		{"shared space, when private is refused", "100.64.0.1"},
	}
	dialer := dial.New(dial.Config{NoPrivate: true, Loopback: []string{"half.example"}, Resolver: dialtest.Resolver(names)})
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(test.host, "9"))
			if err == nil {
				_ = conn.Close()
				t.Fatal("connected")
			}
			if _, ok := errors.AsType[*dial.RefusedError](err); !ok {
				t.Errorf("%v is not a refusal", err)
			}
		})
	}
}

func TestAllowedAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	names := map[string][]string{"listed.example": {"127.0.0.1"}, "second.example": {"169.254.169.254", "127.0.0.1"}, "other.example": {"127.0.0.1"}}
	dialer := dial.New(dial.Config{Loopback: []string{"listed.example", "second.example"}, Resolver: dialtest.Resolver(names)})
	tests := []struct {
		reason, host string
		refused      bool
	}{
		{reason: "loopback that was asked for", host: "127.0.0.1"},
		{reason: "localhost", host: "localhost"},
		{reason: "a listed name", host: "listed.example"},
		{reason: "the second address is good", host: "second.example"},
		{reason: "a name that is not listed", host: "other.example", refused: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(test.host, port))
			if err == nil {
				_ = conn.Close()
			}
			if (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIsLoopbackHost(t *testing.T) {
	tests := map[string]bool{
		"localhost": true, "LOCALHOST": true, "app.localhost": true, "127.0.0.1": true, "127.9.9.9": true,
		"::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"localhost.example": false, "notlocalhost": false, "10.0.0.1": false, "128.0.0.1": false, "": false,
	}
	for host, want := range tests {
		if got := dial.IsLoopbackHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func Example() {
	dialer := dial.New(dial.Config{})
	_, err := dialer.DialContext(context.Background(), "tcp", "169.254.169.254:80")
	refused, _ := errors.AsType[*dial.RefusedError](err)
	fmt.Println(refused)
	// Output: 169.254.169.254 is at 169.254.169.254, a cloud metadata service, which is not connected to
}

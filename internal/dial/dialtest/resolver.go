// Package dialtest provides name resolution for tests.
//
// Its resolver is the standard library's, with a DNS server in the same process; it sends no
// packets.
package dialtest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver returns a resolver for exactly these names and addresses.
func Resolver(names map[string][]string) *net.Resolver {
	return &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go serve(server, names)
			return client, nil
		},
	}
}

// serve implements DNS over TCP, which the resolver uses on a connection that is not a packet
// connection.
func serve(conn net.Conn, names map[string][]string) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := answer(query, names)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func answer(query []byte, names map[string][]string) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, RecursionAvailable: true},
		Questions: message.Questions,
	}
	for _, question := range message.Questions {
		addresses, known := names[strings.TrimSuffix(question.Name.String(), ".")]
		if !known {
			reply.RCode = dnsmessage.RCodeNameError
		}
		for _, text := range addresses {
			if body := resource(question.Type, netip.MustParseAddr(text)); body != nil {
				header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class}
				reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: body})
			}
		}
	}
	return reply.Pack()
}

func resource(kind dnsmessage.Type, address netip.Addr) dnsmessage.ResourceBody {
	switch {
	case kind == dnsmessage.TypeA && address.Is4():
		return &dnsmessage.AResource{A: address.As4()}
	case kind == dnsmessage.TypeAAAA && address.Is6():
		return &dnsmessage.AAAAResource{AAAA: address.As16()}
	}
	return nil
}

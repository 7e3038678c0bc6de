package redis

import (
	"errors"
	"fmt"
	"net"
)

// Bounds on the replies to one request. The library reads any length that a reply announces, so
// replies are checked before it reads them: the server, or an on-path attacker, must not exhaust
// this process's memory or end it.
const (
	// maxBulk is the longest text: an entry, and one byte that detects an excess.
	maxBulk = MaxValue + overhead + 1
	// maxReplies bounds the bytes of all replies to one request: several entries of the largest
	// size.
	maxReplies = 8 << 20
	// maxItems bounds the announced elements of all lists in these replies, and so their depth. A
	// greeting has some twenty.
	maxItems = 1 << 10
	// maxLine bounds a line: an error, a number.
	maxLine = 4 << 10
)

// errReply means that the input is not a reply of a server to a request of this package.
var errReply = errors.New("the server's reply does not match the request")

// replies is a connection that scans incoming bytes as RESP2 or RESP3 before they are passed on.
// A write starts a new count.
type replies struct {
	net.Conn
	scan scanner
}

// Write implements net.Conn.
func (r *replies) Write(p []byte) (int, error) {
	r.scan.bytes, r.scan.items = 0, 0
	return r.Conn.Write(p)
}

// Read implements net.Conn. It returns nothing of a chunk that exceeds a bound.
func (r *replies) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	if wrong := r.scan.feed(p[:n]); wrong != nil {
		_ = r.Close()
		return 0, wrong
	}
	return n, err
}

// scanner follows the lengths of replies. It does not track nesting: lists are bounded by the sum
// of their announced elements.
type scanner struct {
	bytes, items int
	// kind is the type of the current line, 0 between lines.
	kind byte
	line []byte
	// skip is the rest of a text, with its line's end.
	skip int
}

// feed scans the next bytes.
func (s *scanner) feed(p []byte) error {
	s.bytes += len(p)
	if s.bytes > maxReplies {
		return fmt.Errorf("%w: more than %d bytes", errReply, maxReplies)
	}
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip -= n
			p = p[n:]
			continue
		}
		c := p[0]
		p = p[1:]
		switch {
		case s.kind == 0:
			s.kind = c
		case c != '\n':
			s.line = append(s.line, c)
			if len(s.line) > maxLine {
				return fmt.Errorf("%w: a line of more than %d bytes", errReply, maxLine)
			}
		default:
			if err := s.end(); err != nil {
				return err
			}
			s.kind, s.line = 0, s.line[:0]
		}
	}
	return nil
}

// end processes a whole line. Types that require a subscription or an option (push messages,
// attributes, texts and lists without a length) are refused.
func (s *scanner) end() error {
	switch s.kind {
	case '+', '-', ':', ',', '(':
		return s.ended()
	case '_', '#':
		// The library does not search for the end of these, it counts.
		if want := map[byte]int{'_': 1, '#': 2}[s.kind]; len(s.line) != want {
			return fmt.Errorf("%w: %q with %d bytes", errReply, s.kind, len(s.line))
		}
		return s.ended()
	case '$', '!', '=':
		n, err := s.length(maxBulk)
		if err == nil && n >= 0 {
			s.skip = n + len("\r\n")
		}
		return err
	case '*', '~', '%':
		n, err := s.length(maxItems)
		if err != nil || n < 0 {
			return err
		}
		if s.kind == '%' {
			n *= 2
		}
		s.items += n
		if s.items > maxItems {
			return fmt.Errorf("%w: more than %d elements", errReply, maxItems)
		}
		return nil
	}
	return fmt.Errorf("%w: type %q", errReply, s.kind)
}

// ended reports whether the line has its required end.
func (s *scanner) ended() error {
	if n := len(s.line); n == 0 || s.line[n-1] != '\r' {
		return fmt.Errorf("%w: a line that does not end", errReply)
	}
	return nil
}

// length parses the number of the line, up to most, or -1 for nothing.
func (s *scanner) length(most int) (int, error) {
	if err := s.ended(); err != nil {
		return 0, err
	}
	digits := s.line[:len(s.line)-1]
	if string(digits) == "-1" && s.kind != '%' {
		return -1, nil
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: a length that is no number", errReply)
		}
		n = 10*n + int(c-'0')
		if n > most {
			return 0, fmt.Errorf("%w: a length of more than %d", errReply, most)
		}
	}
	if len(digits) == 0 {
		return 0, fmt.Errorf("%w: no length", errReply)
	}
	return n, nil
}

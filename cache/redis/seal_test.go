package redis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func testSealer(t testing.TB, key string) *sealer {
	t.Helper()
	s, err := newSealer([]byte(strings.Repeat(key, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSealIsBound tries each byte of an entry, each length, and each edge of its
// time.
func TestSealIsBound(t *testing.T) {
	s := testSealer(t, "k")
	now := time.UnixMilli(1_700_000_000_000)
	sealed := s.seal("key", []byte("value"), now, now.Add(time.Hour))
	for _, c := range []struct {
		reason string
		now    time.Time
		oldest time.Duration
		want   Reason
	}{
		{"just written", now, time.Hour, ""},
		{"just before its end", now.Add(time.Hour - 1), 2 * time.Hour, ""},
		{"at its end", now.Add(time.Hour), 2 * time.Hour, Ended},
		{"as old as the reader bears", now.Add(time.Minute), time.Minute, Ended},
		{"not quite as old", now.Add(time.Minute - 1), time.Minute, ""},
		{"from a clock ahead as far as it may be", now.Add(-maxSkew), time.Hour, ""},
		{"and further", now.Add(-maxSkew - time.Millisecond), time.Hour, Future},
	} {
		t.Run(c.reason, func(t *testing.T) {
			value, why := s.open("key", sealed, c.now, c.oldest)
			if why != c.want || why == "" && string(value) != "value" {
				t.Errorf("got %q, %q", value, why)
			}
		})
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 0x80
		if _, why := s.open("key", changed, now, time.Hour); why == "" {
			t.Errorf("byte %d may be changed", i)
		}
		if _, why := s.open("key", sealed[:i], now, time.Hour); why == "" {
			t.Errorf("%d bytes are enough", i)
		}
	}
	for _, key := range []string{"", "ke", "key2", "Key"} {
		if _, why := s.open(key, sealed, now, time.Hour); why != Forged {
			t.Errorf("for %q: %q", key, why)
		}
	}
	if _, why := testSealer(t, "o").open("key", sealed, now, time.Hour); why != Forged {
		t.Errorf("under another key: %q", why)
	}
	if bytes.Equal(sealed, s.seal("key", []byte("value"), now, now.Add(time.Hour))) {
		t.Error("two entries are equal")
	}
	if s.name("p:", "key") == testSealer(t, "o").name("p:", "key") || s.name("p:", "key") == s.name("p:", "key2") {
		t.Error("two names are equal")
	}
}

// FuzzOpen: only sealed entries can be opened.
func FuzzOpen(f *testing.F) {
	s := testSealer(f, "k")
	now := time.UnixMilli(1_700_000_000_000)
	good := s.seal("key", []byte("value"), now, now.Add(time.Hour))
	f.Add("key", good)
	f.Add("other", good)
	f.Add("key", good[:overhead])
	f.Add("key", []byte{})
	f.Add("key", []byte{version})
	f.Add("key", []byte{version + 1})
	f.Fuzz(func(t *testing.T, key string, entry []byte) {
		value, why := s.open(key, entry, now, time.Hour)
		if why == "" && (key != "key" || string(value) != "value") { // which is all that was ever sealed
			t.Errorf("%q opened %x", key, entry)
		}
		if why != "" && value != nil {
			t.Errorf("a value beside %s", why)
		}
	})
}

// pieces is a connection from which the bytes come in pieces of a size.
type pieces struct {
	net.Conn
	rest string
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(to, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}
func (p *pieces) Write(b []byte) (int, error) { return len(b), nil }
func (p *pieces) Close() error                { return nil }

func TestRepliesAreBounded(t *testing.T) {
	text := func(n int) string { return "$" + strconv.Itoa(n) + "\r\n" + strings.Repeat("x", n) + "\r\n" }
	for _, c := range []struct {
		reason, bytes string
		refused       bool
	}{
		{"each kind", "+OK\r\n-ERR no\r\n:-12\r\n_\r\n#t\r\n,1.5\r\n(99\r\n$2\r\nab\r\n!3\r\nERR\r\n=5\r\ntxt:a\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n:2\r\n~0\r\n%1\r\n+a\r\n+b\r\n", false},
		{"a text that looks like more", "$12\r\n*9999999\r\n>1\r\n+OK\r\n", false},
		{"the longest text", text(maxBulk), false},
		{"one byte more", text(maxBulk + 1), true},
		{"seven of the longest", strings.Repeat(text(maxBulk), 7), false},
		{"eight", strings.Repeat(text(maxBulk), 8), true},
		{"the longest list", "*1024\r\n", false},
		{"one more", "*1025\r\n", true},
		{"two lists that are too long together", "*1000\r\n*25\r\n", true},
		{"a map counts twice", "%513\r\n", true},
		{"a map of half", "%512\r\n", false},
		{"a map without a length", "%-1\r\n", true},
		{"null with more", "_x\r\n", true},
		{"a truth of two letters", "#tt\r\n", true},
		{"no carriage return", "+OK\n", true},
		{"an empty line", "+\n", true},
		{"no length", "$\r\n", true},
		{"a length in hexadecimal", "$0x1\r\n", true},
		{"a push message", ">1\r\n", true},
		{"an attribute", "|1\r\n", true},
		{"a chunk", ";1\r\n", true},
		{"zeros without end", "$" + strings.Repeat("0", maxLine+1), true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			for _, size := range []int{1, 4093, 1 << 20} {
				if size == 1 && len(c.bytes) > maxBulk/2 {
					continue // would take seconds
				}
				conn := &replies{Conn: &pieces{rest: c.bytes, size: size}}
				_, err := io.Copy(io.Discard, conn)
				if errors.Is(err, errReply) != c.refused || err != nil && !c.refused {
					t.Errorf("in pieces of %d: %v", size, err)
				}
			}
		})
	}
	t.Run("each request has a count of its own", func(t *testing.T) {
		conn := &replies{Conn: &pieces{rest: strings.Repeat(text(maxBulk), 8), size: maxBulk}}
		buffer := make([]byte, maxBulk)
		for {
			if _, err := conn.Write([]byte("next")); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(buffer); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzReplies has no bytes pass in one piece that are refused in another, and no
// more skipped than a text may have.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("%1\r\n+proto\r\n:3\r\n$2\r\nab\r\n"))
	f.Add([]byte("$-1\r\n*2\r\n_\r\n#t\r\n"))
	f.Add([]byte("$9223372036854775807\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, split scanner
		err := whole.feed(p)
		var err2 error
		for i := 0; i < len(p) && err2 == nil; i++ {
			err2 = split.feed(p[i : i+1])
		}
		if (err == nil) != (err2 == nil) {
			t.Errorf("in one piece %v, in many %v", err, err2)
		}
		if whole.skip > maxBulk+2 || whole.items > maxItems && err == nil {
			t.Errorf("%d to skip, %d elements", whole.skip, whole.items)
		}
	})
}

func TestRest(t *testing.T) {
	now := time.UnixMilli(0)
	b := newBreaker(func() time.Time { return now })
	down := errors.New("down")
	left := func(want time.Duration, unavailable bool) {
		t.Helper()
		if got, is := b.remaining(); is != unavailable || is && got != want {
			t.Errorf("%s left, unavailable %v; want %s, %v", got, is, want, unavailable)
		}
	}
	left(0, false)
	b.open(down)
	b.open(down) // a concurrent request
	left(time.Second, true)
	b.responded() // an earlier request
	for _, want := range []int{2, 4, 8, 16, 30, 30} {
		now = now.Add(time.Minute)
		b.extend(down)
		left(time.Duration(want)*time.Second, true)
	}
	if s := b.state(); s.Since != time.UnixMilli(0) || !errors.Is(s.LastError, down) {
		t.Errorf("%+v", s)
	}
	b.close()
	left(0, false)
	b.open(down) // it answered the probe, and no other request
	left(30*time.Second, true)
	b.close()
	b.responded()
	b.open(down)
	left(time.Second, true)
	b.close()
	b.record(errors.New("full"))
	left(0, false)
	if s := b.state(); s.Unavailable || s.LastError.Error() != "full" || s.Since != now {
		t.Errorf("%+v", s)
	}
}

func BenchmarkSeal(b *testing.B) {
	s, value, now := testSealer(b, "k"), make([]byte, 2<<10), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		s.seal("key", value, now, now.Add(time.Hour))
	}
}

func BenchmarkOpen(b *testing.B) {
	s, now := testSealer(b, "k"), time.Now()
	sealed := s.seal("key", make([]byte, 2<<10), now, now.Add(time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		if _, why := s.open("key", sealed, now, time.Hour); why != "" {
			b.Fatal(why)
		}
	}
}

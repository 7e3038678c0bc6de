package redis_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/quaymaster/quaymaster/cache/redis"
)

// TestEntriesOfOthers has an attacker with full write access to the server, next to an
// entry that is unchanged and stays valid in the same answer.
func TestEntriesOfOthers(t *testing.T) {
	s := start(t, acl)
	raw := s.raw()
	ctx := context.Background()
	for _, c := range []struct {
		reason string
		// forge is given the name and entry of the key "a" and an entry of another
		// key, and writes.
		forge func(name, entry, other string)
		clock time.Duration // how much later it is for the reader
		want  redis.Reason  // empty: known
	}{
		{"as it was written", func(name, entry, _ string) { set(t, raw, name, entry) }, 0, ""},
		{"by a replica with a clock slightly ahead", func(string, string, string) {}, -20 * time.Second, ""},
		{"by one with a clock far ahead", func(string, string, string) {}, -time.Hour, redis.Future},
		{"it would end soon", func(string, string, string) {}, 59 * time.Minute, ""},
		{"expired, and its TTL was removed", func(name, _, _ string) {
			if err := raw.Do(ctx, raw.B().Persist().Key(name).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, redis.Ended},
		{"that of another key", func(name, _, other string) { set(t, raw, name, other) }, 0, redis.Forged},
		{"one bit is other", func(name, entry, _ string) { set(t, raw, name, flip(entry, len(entry)-1)) }, 0, redis.Forged},
		{"one bit of the nonce is other", func(name, entry, _ string) { set(t, raw, name, flip(entry, 1)) }, 0, redis.Forged},
		{"another version", func(name, entry, _ string) { set(t, raw, name, flip(entry, 0)) }, 0, redis.UnknownVersion},
		{"its end is missing", func(name, entry, _ string) { set(t, raw, name, entry[:len(entry)-1]) }, 0, redis.Forged},
		{"more was added", func(name, entry, _ string) { set(t, raw, name, entry+"x") }, 0, redis.Forged},
		{"most of it is missing", func(name, entry, _ string) { set(t, raw, name, entry[:30]) }, 0, redis.TooShort},
		{"something else", func(name, _, _ string) { set(t, raw, name, `{"fact":"signed"}`) }, 0, redis.UnknownVersion},
		{"one byte too large", func(name, entry, _ string) { set(t, raw, name, entry+strings.Repeat("x", redis.MaxValue)) }, 0, redis.TooLarge},
		{"huge", func(name, entry, _ string) { set(t, raw, name, entry+strings.Repeat("x", 64<<20)) }, 0, redis.TooLarge},
		{"a list", func(name, entry, _ string) {
			raw.Do(ctx, raw.B().Del().Key(name).Build())
			if err := raw.Do(ctx, raw.B().Rpush().Key(name).Element(entry).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}, 0, redis.WrongType},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if err := raw.Do(ctx, raw.B().Flushall().Build()).Error(); err != nil {
				t.Fatal(err)
			}
			name, entry := s.write(t, raw, "a", "A")
			_, other := s.write(t, raw, "b", "A") // the very same value
			c.forge(name, entry, other)
			// Written just now for any reader.
			written := time.Now().Add(c.clock)
			open(t, s.configured(), redis.WithClock(func() time.Time { return written })).Keep("control", []byte("C"), time.Hour)
			seen := newCounts()
			reader := open(t, s.configured(), redis.WithObserver(seen), redis.WithClock(func() time.Time { return written }))
			kept(t, reader, "control", "C")
			got := reader.Get(ctx, []string{"a", "control"})
			if string(got["control"]) != "C" {
				t.Errorf("the entry beside it: %q, %+v", got["control"], reader.Status())
			}
			if value, known := got["a"]; known != (c.want == "") || known && string(value) != "A" {
				t.Errorf("it is known: %v, %q", known, value)
			}
			if c.want != "" && seen.rejections(c.want) != 1 || len(seen.rejected) != min(len(c.want), 1) {
				t.Errorf("counted as %v, want %q", seen.rejected, c.want)
			}
			if reader.Status().Unavailable {
				t.Error("the server is unavailable after it")
			}
		})
	}
}

// write keeps one fact for an hour and returns how it is stored.
func (s *server) write(t *testing.T, raw rueidis.Client, key, value string) (name, entry string) {
	t.Helper()
	before := s.entries(raw)
	writer := open(t, s.configured())
	writer.Keep(key, []byte(value), time.Hour)
	writer.Close()
	for name, entry := range s.entries(raw) {
		if _, old := before[name]; !old {
			return name, entry
		}
	}
	t.Fatal("it was not written")
	return "", ""
}

func flip(entry string, at int) string {
	bytes := []byte(entry)
	bytes[at] ^= 1
	return string(bytes)
}

// TestUnderAnotherKey has an entry that another set of replicas sealed, for the
// same key, under our name of it.
func TestUnderAnotherKey(t *testing.T) {
	s := start(t, acl)
	raw := s.raw()
	name, _ := s.write(t, raw, "a", "A")
	config := s.configured()
	config.Keys = keys(key("o"))
	others := open(t, config)
	others.Keep("a", []byte("evil"), time.Hour)
	others.Close()
	seen := newCounts()
	reader := open(t, s.configured(), redis.WithObserver(seen))
	kept(t, reader, "a", "A")
	for theirs, entry := range s.entries(raw) {
		if theirs != name {
			set(t, raw, name, entry)
		}
	}
	if value, known := recall(t, reader, "a"); known || seen.rejections(redis.Forged) != 1 {
		t.Errorf("known %v, %q; counted %v", known, value, seen.rejected)
	}
}

// TestTooOldForTheReader has a reader with a shorter maximum TTL than the
// writer.
func TestTooOldForTheReader(t *testing.T) {
	s := start(t, acl)
	s.write(t, s.raw(), "a", "A")
	for _, c := range []struct {
		later time.Duration
		known bool
	}{{9 * time.Minute, true}, {11 * time.Minute, false}} {
		reader := open(t, s.configured(), redis.WithMaxTTL(10*time.Minute), redis.WithClock(func() time.Time { return time.Now().Add(c.later) }))
		if _, known := recall(t, reader, "a"); known != c.known {
			t.Errorf("after %s it is known: %v", c.later, known)
		}
	}
}

// TestHostileServers replaces the server by one that returns anything.
func TestHostileServers(t *testing.T) {
	const hello = "%1\r\n+proto\r\n:3\r\n"
	for _, c := range []struct {
		reason, hello, reply, want string
	}{
		{"a server", hello, "$0\r\n\r\n", ""},
		{"one with RESP2 only", "-ERR unknown command 'HELLO'\r\n", "$0\r\n\r\n", ""},
		{"a text of 8 EiB", hello, "$9223372036854775807\r\n", "a length of more than"},
		{"a text without a length", hello, "$?\r\n;3\r\nabc\r\n", "no number"},
		{"a negative length", hello, "$-2\r\n", "no number"},
		{"a map of less than nothing", "%-1\r\n", "", "no number"},
		{"a list of millions", hello, "*1000000\r\n", "a length of more than"},
		{"lists in lists", hello, strings.Repeat("*1\r\n", 2000), "elements"},
		{"a push message", hello, ">2\r\n+message\r\n+x\r\n", "type"},
		{"an attribute", hello, "|1\r\n+a\r\n+b\r\n$1\r\nx\r\n", "type"},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n", "", "type"},
		{"a line without an end", hello, "+" + strings.Repeat("x", 5000), "a line of more than"},
		{"it hangs up", hello, "", "EOF"},
		{"an error", hello, "-LOADING not yet\r\n", "LOADING"},
		{"a number", hello, ":1\r\n", "ask for entries"},
		{"a list", hello, "*1\r\n+a\r\n", "ask for entries"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := redis.Config{Address: impostor(t, c.hello, c.reply), Keys: keys(key("k"))}
			store := open(t, config)
			if _, known := recall(t, store, "a"); known {
				t.Error("it is known")
			}
			status := store.Status()
			if c.want == "" && (status.Unavailable || status.LastError != nil) {
				t.Errorf("%+v", status)
			}
			if c.want != "" && (!status.Unavailable || !strings.Contains(status.LastError.Error(), c.want)) {
				t.Errorf("%+v, want %s", status, c.want)
			}
		})
	}
}

// impostor answers a greeting with hello and each other command with reply; it
// hangs up where either is empty.
func impostor(t *testing.T, hello, reply string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for commands := bufio.NewReader(conn); ; {
					name, err := command(commands)
					answer := reply
					if name == "HELLO" {
						answer = hello
					}
					if err != nil || answer == "" {
						return
					}
					if _, err := conn.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// command reads one command, with arguments without line breaks, and returns its name.
func command(commands *bufio.Reader) (name string, err error) {
	head, err := commands.ReadString('\n')
	if err != nil {
		return "", err
	}
	for i := range 2 * int(head[1]-'0') {
		line, err := commands.ReadString('\n')
		if err != nil {
			return "", err
		}
		if i == 1 {
			name = strings.TrimSpace(line)
		}
	}
	return name, nil
}

// TestAddressesThatAreNotConnectedTo: a name under an attacker's control must not lead to
// an address that only this machine should reach. No packet leaves it.
func TestAddressesThatAreNotConnectedTo(t *testing.T) {
	for address, want := range map[string]string{
		"169.254.169.254:6379": "metadata",
		"0.0.0.0:6379":         "unspecified",
		"127.0.0.1:1":          "refused", // it was connected to, and no server listens there
	} {
		t.Run(address, func(t *testing.T) {
			store := open(t, redis.Config{Address: address, Keys: keys(key("k"))})
			if _, known := recall(t, store, "a"); known {
				t.Error("it is known")
			}
			if status := store.Status(); !status.Unavailable || !strings.Contains(status.LastError.Error(), want) {
				t.Errorf("%+v", status)
			}
		})
	}
}

package playground_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/playground"
)

// TestServes: the command prints the address, serves it, and stops when it is interrupted.
func TestServes(t *testing.T) {
	for _, row := range []struct {
		reason string
		args   []string
		host   string // of the request; empty for the printed address
		status int
	}{
		{"on loopback", []string{"--listen", "127.0.0.1:0"}, "", 200},
		{"by a foreign name", []string{"--listen", "127.0.0.1:0"}, "evil.example", 421},
		{"for all, by another name", []string{"--listen", "0.0.0.0:0", "--allow-remote"}, "playground.example", 200},
	} {
		t.Run(row.reason, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			read, write := io.Pipe()
			cmd := playground.New(command.Terminal{Out: write, Err: io.Discard})
			cmd.SetArgs(row.args)
			ended := make(chan error, 1)
			go func() { ended <- cmd.ExecuteContext(ctx) }()
			lines := bufio.NewReader(read)
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			address, _ := strings.CutPrefix(strings.TrimSpace(line), "Playground: ")
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(address, "[::]", "127.0.0.1", 1), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = row.host
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			answer, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != row.status {
				t.Errorf("%s, want %d", answer.Status, row.status)
			}
			stop()
			if err := <-ended; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// TestRefuses: no address that others reach, unless that is said.
func TestRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, row := range []struct {
		reason, listen, says string
	}{
		{"all addresses", ":0", "--allow-remote"},
		{"another address", "192.0.2.1:0", "--allow-remote"},
		{"a name", "playground.example:0", "--allow-remote"},
		{"no port", "127.0.0.1", "want host:port"},
		{"in use", taken.Addr().String(), "in use"},
	} {
		var out bytes.Buffer
		cmd := playground.New(command.Terminal{Out: &out, Err: &out})
		cmd.SetArgs([]string{"--listen", row.listen})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		ctx, stop := context.WithCancel(t.Context())
		stop() // had it been accepted, it would end
		if err := cmd.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), row.says) && row.reason != "in use" {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

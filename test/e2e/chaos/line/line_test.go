package line_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/line"
)

// short is when a client gives up that waits for what never comes.
const short = 300 * time.Millisecond

// open starts a server with a line to it.
func open(t *testing.T) *line.Line {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(server.Close)
	l, err := line.Listen(t.Context(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// ask asks the server by its line, over a connection that is kept.
func ask(t *testing.T, client *http.Client, l *line.Line, patience time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && string(text) != "hello" {
		err = errors.New(string(text))
	}
	return err
}

func TestWeather(t *testing.T) {
	for _, row := range []struct {
		reason  string
		weather line.Weather
		fails   bool
		least   time.Duration
	}{
		{"none", line.Weather{}, false, 0},
		{"slow, both ways", line.Weather{Delay: 50 * time.Millisecond}, false, 100 * time.Millisecond},
		{"all is lost at first", line.Weather{Loss: 1}, true, short},
		{"all is cut", line.Weather{Cut: 1}, true, 0},
		{"silent", line.Weather{Silent: true}, true, short},
		{"refused", line.Weather{Refuse: true}, true, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			l := open(t)
			client := &http.Client{Transport: &http.Transport{}}
			if err := ask(t, client, l, 10*time.Second); err != nil {
				t.Fatalf("before: %v", err)
			}
			l.Set(row.weather)
			for range 2 { // by the connection of before, and by a new one where that is gone
				began, patience := time.Now(), 10*time.Second
				if row.fails {
					patience = short
				}
				err := ask(t, client, l, patience)
				if (err != nil) != row.fails || time.Since(began) < row.least {
					t.Errorf("%v after %s; want that it fails: %t", err, time.Since(began), row.fails)
				}
			}
			l.Set(line.Weather{})
			if err := ask(t, client, l, 10*time.Second); err != nil {
				t.Errorf("after: %v", err)
			}
		})
	}
}

// TestSilenceEnds: data that was sent meanwhile arrives.
func TestSilenceEnds(t *testing.T) {
	l := open(t)
	client := &http.Client{Transport: &http.Transport{}}
	l.Set(line.Weather{Silent: true})
	answered := make(chan error, 1)
	go func() { answered <- ask(t, client, l, 10*time.Second) }()
	if err := ask(t, &http.Client{Transport: &http.Transport{}}, l, short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another one: %v", err)
	}
	l.Set(line.Weather{})
	if err := <-answered; err != nil {
		t.Errorf("the waiting client: %v", err)
	}
}

// TestServerGone: a line to a server that is gone resets connections.
func TestServerGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	l, err := line.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := ask(t, &http.Client{Transport: &http.Transport{}}, l, 10*time.Second); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

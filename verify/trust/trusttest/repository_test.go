package trusttest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tuf"

	"github.com/quaymaster/quaymaster/verify/trust/trusttest"
)

// started serves a repository with two valid versions of one content.
func started(t *testing.T) (*trusttest.Repository, *httptest.Server) {
	t.Helper()
	r, err := trusttest.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Publish([]byte("one"), trusttest.OldSnapshot); err == nil {
		t.Fatal("there is no snapshot before")
	}
	for range 2 {
		if err := r.Publish([]byte("one"), trusttest.None); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server
}

// get is a request as sigstore-go's, with its earlier metadata in a folder.
func get(t *testing.T, r *trusttest.Repository, server *httptest.Server, folder string) ([]byte, error) {
	t.Helper()
	client, err := tuf.New(&tuf.Options{Root: r.Root(), RepositoryBaseURL: server.URL, CachePath: folder})
	if err != nil {
		return nil, err
	}
	return client.GetTarget(trusttest.Target)
}

// TestFaultyVersions: a client accepts correct metadata, and none with a fault.
func TestFaultyVersions(t *testing.T) {
	for _, row := range []struct {
		fault trusttest.Fault
		want  bool
	}{
		{trusttest.None, true},
		{trusttest.Rotated, true},
		{trusttest.LongSnapshot, false},
		{trusttest.LongTargets, false},
		{trusttest.LongTarget, false},
		{trusttest.OneSignature, false},
		{trusttest.OneKeyTwice, false},
		{trusttest.Ended, false},
		{trusttest.OtherTarget, false},
		{trusttest.EndlessTarget, false},
		{trusttest.EndlessTimestamp, false},
		{trusttest.OldSnapshot, false},
		{trusttest.SkippedRoot, false},
		{trusttest.UnrelatedRoot, false},
		{trusttest.NoThreshold, false},
	} {
		t.Run(string(row.fault), func(t *testing.T) {
			t.Parallel()
			r, server := started(t)
			folder := t.TempDir()
			if got, err := get(t, r, server, folder); err != nil || string(got) != "one" {
				t.Fatalf("the first version: %q, %v", got, err)
			}
			if err := r.Publish([]byte("two"), row.fault); err != nil {
				t.Fatal(err)
			}
			got, err := get(t, r, server, folder)
			if taken := err == nil && bytes.Equal(got, []byte("two")); taken != row.want {
				t.Errorf("taken %t (%q, %v), want %t", taken, got, err, row.want)
			}
		})
	}
}

// TestShow: an earlier version is served whole, and not accepted after a later one.
func TestShow(t *testing.T) {
	r, server := started(t)
	folder := t.TempDir()
	if err := r.Publish([]byte("two"), trusttest.None); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, r, server, folder); err != nil || string(got) != "two" {
		t.Fatalf("the later version: %q, %v", got, err)
	}
	if r.Show(9) == nil {
		t.Error("a version that was never published is shown")
	}
	if err := r.Show(1); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, r, server, folder); err == nil && string(got) == "one" {
		t.Error("an earlier version is taken after a later one")
	}
	if got, err := get(t, r, server, t.TempDir()); err != nil || string(got) != "one" {
		t.Errorf("a new client must accept the earlier version: %q, %v", got, err)
	}
}

// TestClone: a copy publishes with the same keys, and changes nothing in the first repository.
func TestClone(t *testing.T) {
	r, server := started(t)
	copied := r.Clone()
	if err := copied.Publish([]byte("two"), trusttest.None); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, r, server, t.TempDir()); err != nil || string(got) != "one" {
		t.Errorf("the first repository: %q, %v", got, err)
	}
	other := httptest.NewServer(copied)
	t.Cleanup(other.Close)
	if got, err := get(t, r, other, t.TempDir()); err != nil || string(got) != "two" {
		t.Errorf("the copy, from the first root: %q, %v", got, err)
	}
}

// TestFiles: files are there by name, and what does not end is ended by the reader.
func TestFiles(t *testing.T) {
	r, server := started(t)
	if files := r.Files(); len(files["timestamp.json"]) == 0 || len(files["1.targets.json"]) == 0 {
		t.Errorf("files %v", len(files))
	}
	if err := r.Publish([]byte("two"), trusttest.EndlessTimestamp); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(server.URL + "/timestamp.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	room := make([]byte, 1<<20)
	for total := 0; total < 4<<20; {
		n, err := response.Body.Read(room)
		if err != nil {
			t.Fatalf("it ends after %d bytes: %v", total, err)
		}
		total += n
	}
}

package tufclient_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify/internal/tufclient"
	"github.com/quaymaster/quaymaster/verify/trust/trusttest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// split is a repository with other keys for timestamp and snapshot than for root and targets.
type split struct {
	files           map[string][]byte
	first           []byte
	online, offline signature.Signer
}

func newSplit(t *testing.T) *split {
	t.Helper()
	signer := func() signature.Signer {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return testkit.Must(signature.LoadSigner(private, crypto.Hash(0)))(t)
	}
	r := &split{files: map[string][]byte{}, online: signer(), offline: signer()}
	root := metadata.Root(time.Now().AddDate(1, 0, 0))
	for role, by := range map[string]signature.Signer{"root": r.offline, "targets": r.offline, "timestamp": r.online, "snapshot": r.online} {
		if err := root.Signed.AddKey(keyOf(t, by), role); err != nil {
			t.Fatal(err)
		}
	}
	r.first = signed(t, root, r.offline)
	return r
}

func keyOf(t *testing.T, of signature.Signer) *metadata.Key {
	t.Helper()
	return testkit.Must(metadata.KeyFromPublicKey(testkit.Must(of.PublicKey())(t)))(t)
}

func signed[T metadata.Roles](t *testing.T, m *metadata.Metadata[T], by signature.Signer) []byte {
	t.Helper()
	if _, err := m.Sign(by); err != nil {
		t.Fatal(err)
	}
	return testkit.Must(m.ToBytes(false))(t)
}

func (r *split) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	text, ok := r.files[strings.TrimPrefix(request.URL.Path, "/")]
	if !ok {
		http.NotFound(w, request)
		return
	}
	_, _ = w.Write(text)
}

// role signs a version of targets or of a delegated role, which lists content as the target unless it is empty.
func (r *split) role(t *testing.T, name string, version int64, content string, edit func(*metadata.TargetsType)) {
	t.Helper()
	m := metadata.Targets(time.Now().AddDate(0, 6, 0))
	m.Signed.Version = version
	if content != "" {
		file := testkit.Must(metadata.TargetFile().FromBytes("trusted_root.json", []byte(content)))(t)
		m.Signed.Targets["trusted_root.json"] = file
		for _, hash := range file.Hashes {
			r.files["targets/"+hash.String()+".trusted_root.json"] = []byte(content)
		}
	}
	edit(&m.Signed)
	r.files[fmt.Sprintf("%d.%s.json", version, name)] = signed(t, m, r.offline)
}

func unedited(*metadata.TargetsType) {}

// delegate makes targets delegate everything to a role.
func (r *split) delegate(t *testing.T, child string) func(*metadata.TargetsType) {
	key := keyOf(t, r.offline)
	id := testkit.Must(key.ID())(t)
	return func(m *metadata.TargetsType) {
		m.Delegations = &metadata.Delegations{
			Keys:  map[string]*metadata.Key{id: key},
			Roles: []metadata.DelegatedRole{{Name: child, KeyIDs: []string{id}, Threshold: 1, Paths: []string{"*"}}},
		}
	}
}

// publish signs a version of timestamp and snapshot, with versions of the other roles.
func (r *split) publish(t *testing.T, version int64, versions map[string]int64, fill map[string]any) {
	t.Helper()
	until := time.Now().AddDate(0, 0, 7)
	snapshot, timestamp := metadata.Snapshot(until), metadata.Timestamp(until)
	snapshot.Signed.Version, timestamp.Signed.Version = version, version
	snapshot.Signed.Meta = map[string]*metadata.MetaFiles{}
	snapshot.Signed.UnrecognizedFields = fill
	for name, of := range versions {
		snapshot.Signed.Meta[name] = metadata.MetaFile(of)
	}
	timestamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(version)
	r.files[fmt.Sprint(version, ".snapshot.json")] = signed(t, snapshot, r.online)
	r.files["timestamp.json"] = signed(t, timestamp, r.online)
}

// TestSnapshotRollback: with the keys of timestamp and snapshot alone, which are online, targets cannot be
// replaced by earlier ones, and no role can be hidden (TUF 5.5.5).
func TestSnapshotRollback(t *testing.T) {
	accepted := map[string]int64{"targets.json": 2, "child.json": 2, "other.json": 2}
	for _, row := range []struct {
		reason string
		change map[string]int64 // zero: not listed
		want   string
		wrong  string
	}{
		{"the same versions", nil, "new", ""},
		{"a newer other role", map[string]int64{"other.json": 3}, "new", ""},
		{"a new role", map[string]int64{"third.json": 1}, "new", ""},
		{"older targets", map[string]int64{"targets.json": 1}, "", "targets.json"},
		{"an older delegated role", map[string]int64{"child.json": 1}, "", "child.json"},
		{"an older role that is not used", map[string]int64{"other.json": 1}, "", "other.json"},
		{"a role that is hidden", map[string]int64{"other.json": 0}, "", "other.json"},
		{"targets that are hidden", map[string]int64{"targets.json": 0}, "", "targets"},
	} {
		for _, folder := range []string{"", t.TempDir()} {
			r := newSplit(t)
			for version, content := range map[int64]string{1: "old", 2: "new"} {
				r.role(t, "targets", version, "", r.delegate(t, "child"))
				r.role(t, "child", version, content, unedited)
			}
			c := (&host{shown: r}).client(r.first, folder)
			r.publish(t, 1, map[string]int64{"targets.json": 1, "child.json": 1}, nil)
			fetches(t, "the first version", c, "old")
			r.publish(t, 2, accepted, nil)
			fetches(t, "the second version", c, "new")
			versions := maps.Clone(accepted)
			for name, version := range row.change {
				versions[name] = version
				if version == 0 {
					delete(versions, name)
				}
			}
			r.publish(t, 3, versions, nil)
			got, err := c.Fetch(t.Context())
			if string(got) != row.want || (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s, in the folder %q: got %q, %v; want %q, %q", row.reason, folder, got, err, row.want, row.wrong)
			}
			if row.wrong == "" {
				continue
			}
			r.publish(t, 4, accepted, nil)
			fetches(t, row.reason+": the honest versions again", c, "new")
		}
	}
}

// TestDamagedFolder: stored files that cannot be read are replaced, and do not end all fetches.
func TestDamagedFolder(t *testing.T) {
	for _, name := range []string{"timestamp.json", "snapshot.json", "targets.json", "root.json", "child.json"} {
		for _, text := range []string{
			"", `{"signed":`, "{}", "null", `{"signatures":[],"signed":{"_type":"timestamp","meta":{}}}`, `{"signatures":[],"signed":{"_type":"snapshot","meta":{"a":null}}}`,
			`{"signatures":[],"signed":{"_type":"targets","targets":{"a":null}}}`, strings.Repeat(" ", 128<<10+1), `{"signed":[` + strings.Repeat("1,", 20_000) + `1]}`,
		} {
			folder, r := t.TempDir(), newSplit(t)
			for version, content := range map[int64]string{1: "one", 2: "two"} {
				r.role(t, "targets", version, "", r.delegate(t, "child"))
				r.role(t, "child", version, content, unedited)
			}
			h := &host{shown: r}
			r.publish(t, 1, map[string]int64{"targets.json": 1, "child.json": 1}, nil)
			fetches(t, "the first version", h.client(r.first, folder), "one")
			kept, err := filepath.Glob(filepath.Join(folder, "*", name))
			if err != nil || len(kept) != 1 {
				t.Fatalf("%s: kept %v, %v", name, kept, err)
			}
			if err := os.WriteFile(kept[0], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fetches(t, fmt.Sprintf("%s as %.40q", name, text), h.client(r.first, folder), "one")
			r.publish(t, 2, map[string]int64{"targets.json": 2, "child.json": 2}, nil)
			fetches(t, fmt.Sprintf("%s as %.40q: the next version", name, text), h.client(r.first, folder), "two")
		}
	}
}

// TestWholeFilesStay: metadata that can be read is not removed, so that it prevents a rollback over a restart.
func TestWholeFilesStay(t *testing.T) {
	folder, r := t.TempDir(), newRepository(t)
	h := &host{shown: r}
	publish(t, r, "one", trusttest.None)
	earlier := r.Clone()
	publish(t, r, "two", trusttest.None)
	fetches(t, "the second version", h.client(r.Root(), folder), "two")
	h.shown = earlier
	fetches(t, "the first version after a restart", h.client(r.Root(), folder), "")
}

// rootWith is a first root.json that names keys for every role.
func rootWith(t *testing.T, keys map[string]*metadata.Key, ids []string) []byte {
	t.Helper()
	role := map[string]any{"keyids": ids, "threshold": 1}
	return testkit.Must(json.Marshal(map[string]any{
		"signatures": []any{},
		"signed": map[string]any{
			"_type": "root", "spec_version": "1.0.31", "version": 1, "expires": time.Now().AddDate(1, 0, 0).Format(time.RFC3339), "consistent_snapshot": true,
			"keys": keys, "roles": map[string]any{"root": role, "timestamp": role, "snapshot": role, "targets": role},
		},
	}))(t)
}

// TestKeysAreMeasured: no signature is verified with a long key, or with one key many times, because no deadline
// ends that.
func TestKeysAreMeasured(t *testing.T) {
	long := func(bits int) *metadata.Key {
		return testkit.Must(metadata.KeyFromPublicKey(verifytest.LongKey(bits)))(t)
	}
	const tooLong, tooMany = "longer than the bound of 8192", "more than 128 key identifiers"
	for _, row := range []struct {
		reason string
		bits   int
		ids    int // for each of four roles
		wrong  string
	}{
		{"the longest key", 8192, 1, "not enough signatures"},
		{"one bit more", 8193, 1, tooLong},
		{"a very long one", 1 << 19, 1, tooLong},
		{"most identifiers", 2048, 32, "not enough signatures"},
		{"more of them, of one key", 2048, 33, tooMany},
	} {
		ids := make([]string, row.ids)
		for i := range ids {
			ids[i] = "a"
		}
		text := rootWith(t, map[string]*metadata.Key{"a": long(row.bits)}, ids)
		_, err := tufclient.New(tufclient.Options{Files: map[string][]byte{}, Root: text}).Fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s in the first root: got %v, want %q", row.reason, err, row.wrong)
		}
	}
	for bits, want := range map[int]string{8192: "one", 8193: ""} {
		r := newSplit(t)
		r.role(t, "targets", 1, "one", func(m *metadata.TargetsType) {
			m.Delegations = &metadata.Delegations{Keys: map[string]*metadata.Key{"a": long(bits)}, Roles: []metadata.DelegatedRole{}}
		})
		r.publish(t, 1, map[string]int64{"targets.json": 1}, nil)
		fetches(t, fmt.Sprintf("a key of %d bits of a delegated role", bits), (&host{shown: r}).client(r.first, ""), want)
		next := map[string]http.HandlerFunc{"2.root.json": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(rootWith(t, map[string]*metadata.Key{"a": long(bits)}, []string{"a"}))
		}}
		_, err := (&host{shown: r, changed: next}).client(r.first, "").Fetch(t.Context())
		if isLong := err != nil && strings.Contains(err.Error(), tooLong); err == nil || isLong != (bits > 8192) {
			t.Errorf("a key of %d bits in a second root: got %v", bits, err)
		}
	}
}

// TestValues: a small file cannot take much memory by the number of its values.
func TestValues(t *testing.T) {
	for count, want := range map[int]string{15_000: "one", 20_000: ""} {
		r := newSplit(t)
		r.role(t, "targets", 1, "one", unedited)
		r.publish(t, 1, map[string]int64{"targets.json": 1}, map[string]any{"x": make([]int, count)})
		fetches(t, fmt.Sprint(count, " values"), (&host{shown: r}).client(r.first, ""), want)
	}
}

// TestOneParse: clients with one channel parse one at a time, and read at the same time.
func TestOneParse(t *testing.T) {
	r := newRepository(t)
	publish(t, r, "one", trusttest.None)
	parsing := make(chan struct{}, 1)
	reads := 0
	client := func(during func()) *tufclient.Client {
		h := &host{shown: r, changed: map[string]http.HandlerFunc{"timestamp.json": func(w http.ResponseWriter, _ *http.Request) {
			during()
			_, _ = w.Write(r.Files()["timestamp.json"])
		}}}
		return tufclient.New(tufclient.Options{URL: address, Root: r.Root(), HTTP: &http.Client{Transport: h}, Parsing: parsing})
	}
	fetches(t, "a fetch, and another while it reads", client(func() {
		reads++
		if len(parsing) != 0 {
			t.Error("the channel is held while the server is waited for")
		}
		fetches(t, "the other", client(func() { reads++ }), "one")
	}), "one")
	if reads != 2 || len(parsing) != 0 {
		t.Errorf("%d reads, and %d clients hold the channel at the end", reads, len(parsing))
	}
	parsing <- struct{}{}
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := client(func() {}).Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another client parses: got %v", err)
	}
	<-parsing
	fetches(t, "after it", client(func() {}), "one")
}

// TestMemory: a hostile repository with files at all bounds takes some megabytes. One namespace may read two.
func TestMemory(t *testing.T) {
	r := newSplit(t)
	var list []any
	for range 4_500 { // four values each
		list = append(list, map[string]any{"a": 1})
	}
	fill := map[string]any{"x": list}
	filled := func(m *metadata.TargetsType) { m.UnrecognizedFields = fill }
	r.role(t, "targets", 1, "", func(m *metadata.TargetsType) {
		filled(m)
		r.delegate(t, "child")(m)
	})
	r.role(t, "child", 1, strings.Repeat("x", 512<<10), filled)
	r.publish(t, 1, map[string]int64{"targets.json": 1, "child.json": 1}, fill)
	parsing := make(chan struct{}, 1)
	clients := make([]*tufclient.Client, 2)
	for i := range clients {
		clients[i] = tufclient.New(tufclient.Options{URL: address, Root: r.first, HTTP: &http.Client{Transport: &host{shown: r}}, Parsing: parsing})
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // the peak is of what is in use
	peak := peakOf(func() {
		var fetching sync.WaitGroup
		for _, c := range clients {
			fetching.Go(func() {
				if got, err := c.Fetch(t.Context()); err != nil || len(got) != 512<<10 {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			})
		}
		fetching.Wait()
	})
	t.Logf("peak: %d KiB more", peak>>10)
	if peak > 32<<20 {
		t.Errorf("two fetches take up to %d MiB, want at most 32", peak>>20)
	}
}

// peakOf returns by how many bytes the heap grows at most.
func peakOf(run func()) uint64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	peak := before.HeapAlloc
	for {
		select {
		case <-done:
			return peak - before.HeapAlloc
		case <-ticker.C:
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
}

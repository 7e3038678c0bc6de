package certificate

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// made returns the entries of an authority of its own.
func made(t *testing.T, c *clock, names ...string) map[string][]byte {
	t.Helper()
	store := &Memory{}
	refresh(t, newOwn(t, store, c, names...))
	return store.content.Entries
}

// mount writes entries as kubelet does: a folder of its own, and one link that is
// swapped.
func mount(t *testing.T, folder, revision string, entries map[string][]byte) {
	t.Helper()
	data := filepath.Join(folder, ".."+revision)
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{EntryBundle, EntryCertificate, EntryKey} {
		if err := os.WriteFile(filepath.Join(data, name), entries[name], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	next := filepath.Join(folder, "..data_tmp")
	if err := os.Symlink(".."+revision, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(folder, "..data")); err != nil {
		t.Fatal(err)
	}
}

func newFiles(t *testing.T, folder string, c *clock) *Files {
	t.Helper()
	files, err := NewFiles(FilesConfig{
		Certificate: filepath.Join(folder, EntryCertificate), Key: filepath.Join(folder, EntryKey), CA: filepath.Join(folder, EntryBundle),
		Names: []string{service}, Log: slog.New(slog.DiscardHandler), Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesAreFollowed(t *testing.T) {
	c, folder := newClock(), t.TempDir()
	files := newFiles(t, folder, c)
	if err := files.Refresh(t.Context()); err == nil || files.Ready() == nil {
		t.Error("ready without files")
	}
	first := made(t, c)
	mount(t, folder, "1", first)
	refresh(t, files)
	if err := call(files.Source, first[EntryBundle], service, c.now()); err != nil {
		t.Fatal(err)
	}
	changed := files.Changed()
	refresh(t, files)
	select {
	case <-changed:
		t.Error("a change was reported where there is none")
	default:
	}
	second := made(t, c)
	mount(t, folder, "2", second)
	refresh(t, files)
	<-changed
	if err := call(files.Source, second[EntryBundle], service, c.now()); err != nil {
		t.Error(err)
	}
	if err := call(files.Source, first[EntryBundle], service, c.now()); err == nil {
		t.Error("the old certificate is served still")
	}
}

func TestBrokenFilesKeepTheOld(t *testing.T) {
	c := newClock()
	first, second := made(t, c), made(t, c)
	early := newClock()
	early.pass(-LeafLife - time.Hour)
	for i, row := range []struct {
		reason, says string
		entries      map[string][]byte
	}{
		{"a key of another certificate", "private key does not match", with(second, EntryKey, first[EntryKey])},
		{"no PEM", "failed to find any PEM", with(second, EntryCertificate, []byte("hello"))},
		{"an empty key", "failed to find any PEM", with(second, EntryKey, nil)},
		{"another authority", "cannot be verified", with(second, EntryBundle, first[EntryBundle])},
		{"a bundle that is none", "ca.crt", with(second, EntryBundle, []byte("hello"))},
		{"an expired certificate", "expired", made(t, early)},
		{"another name", "a required name", made(t, c, "other.example")},
		{"a file that is too large", "larger than", with(second, EntryCertificate, bytes.Repeat(second[EntryCertificate], 500))},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := t.TempDir()
			files := newFiles(t, folder, c)
			mount(t, folder, "1", first)
			refresh(t, files)
			mount(t, folder, "2", row.entries)
			if err := files.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("row %d: found %v, want %q", i, err, row.says)
			}
			if err := call(files.Source, first[EntryBundle], service, c.now()); err != nil || files.Ready() != nil {
				t.Errorf("the old certificate is not served any more: %v", err)
			}
			mount(t, folder, "3", second)
			refresh(t, files)
			if err := call(files.Source, second[EntryBundle], service, c.now()); err != nil {
				t.Errorf("the twin that is right: %v", err)
			}
		})
	}
}

func with(entries map[string][]byte, name string, value []byte) map[string][]byte {
	entries = cloned(entries)
	entries[name] = value
	return entries
}

func TestFolder(t *testing.T) {
	c, path := newClock(), filepath.Join(t.TempDir(), "certificate")
	folder, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	own := newOwn(t, folder, c)
	refresh(t, own)
	again := newOwn(t, folder, c)
	refresh(t, again)
	if !bytes.Equal(own.Bundle(), again.Bundle()) || !bytes.Equal(own.PeerKey(), again.PeerKey()) {
		t.Error("a second start has another authority")
	}
	info, err := os.Stat(filepath.Join(path, EntryAuthority))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key may be read by others: %v, %v", info.Mode(), err)
	}
	// Ended between two files.
	if err := os.WriteFile(filepath.Join(path, EntryKey), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refresh(t, newOwn(t, folder, c))
	// A folder of another program.
	if err := os.Remove(filepath.Join(path, EntryPeers)); err != nil {
		t.Fatal(err)
	}
	if err := newOwn(t, folder, c).Refresh(t.Context()); err == nil {
		t.Error("a folder that lacks the mark was taken")
	}
	if err := folder.Put(t.Context(), nil, "an old version"); err == nil {
		t.Error("an old version was replaced")
	}
}

func TestNewFilesRefuses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for reason, config := range map[string]FilesConfig{
		"no certificate": {Key: "k", Log: log}, "no key": {Certificate: "c", Log: log}, "no log": {Certificate: "c", Key: "k"},
	} {
		if _, err := NewFiles(config); err == nil {
			t.Errorf("%s: not refused", reason)
		}
	}
	if _, err := NewFolder(""); err == nil {
		t.Error("a folder without a path was taken")
	}
}

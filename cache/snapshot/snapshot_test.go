package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/internal/testkit"
)

// words is a memory of words, some to a part.
type words struct {
	mu    sync.Mutex
	known map[string]bool
}

func (w *words) learn(list ...string) *words {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[string]bool{}
	}
	for _, word := range list {
		w.known[word] = true
	}
	return w
}

func (w *words) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(w.known)), " ")
}

func (w *words) Snapshot(int, int) ([][]byte, error) {
	var parts [][]byte
	for word := range strings.SplitSeq(w.all(), " ") {
		if word != "" {
			parts = append(parts, []byte(word))
		}
	}
	return parts, nil
}

func (w *words) RestoreTrusted(part []byte) (int, error) {
	if bytes.ContainsRune(part, '!') {
		return 0, errors.New("a word has no mark")
	}
	w.mu.Lock()
	if w.known[string(part)] {
		w.mu.Unlock()
		return 0, nil
	}
	w.mu.Unlock()
	w.learn(string(part))
	return 1, nil
}

func key(text string) []byte { return []byte(text + strings.Repeat("-", 32)) }

func keeper(t testing.TB, m snapshot.Memory, s snapshot.Store, k []byte) *snapshot.Keeper {
	t.Helper()
	return testkit.Must(snapshot.New(snapshot.Options{
		Memory: m, Store: s, Sealer: testkit.Must(snapshot.NewSealer(k))(t), Room: 1 << 20, Parts: 8, Interval: time.Minute,
		Failed: func(err error) { t.Log(err) },
	}))(t)
}

// run runs keepers until all have ended.
func run(t *testing.T, keepers ...*snapshot.Keeper) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, k := range keepers {
		k.Run(ctx)
	}
}

func TestEntriesOutliveAllReplicas(t *testing.T) {
	folder := testkit.Must(snapshot.NewFolder(filepath.Join(t.TempDir(), "kept")))(t)
	first, second := new(words).learn("anchor", "buoy"), new(words).learn("crane")
	run(t, keeper(t, first, folder, key("a")), keeper(t, second, folder, key("a")))
	if got := second.all(); got != "anchor buoy crane" {
		t.Errorf("the second replica took over %q", got)
	}
	for reason, test := range map[string]struct {
		key  []byte
		want string
	}{
		"control":         {key("a"), "anchor buoy crane"},
		"another key":     {key("b"), ""},
		"a key cut short": {key("a")[:16], ""},
	} {
		later := &words{}
		n, err := keeper(t, later, folder, test.key).Restore(t.Context())
		if got := later.all(); got != test.want || (err == nil) != (test.want != "") || (n > 0) != (test.want != "") {
			t.Errorf("%s: %q, %d entries, %v", reason, got, n, err)
		}
		if err != nil && !errors.Is(err, snapshot.ErrSealed) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestWriterCannotForgeEntries: write access to the folder allows only removal.
func TestWriterCannotForgeEntries(t *testing.T) {
	path := t.TempDir()
	folder := testkit.Must(snapshot.NewFolder(path))(t)
	run(t, keeper(t, new(words).learn("anchor", "buoy"), folder, key("a")))
	file := filepath.Join(path, "snapshot-0")
	good := testkit.Must(os.ReadFile(file))(t)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for reason, content := range map[string][]byte{
		"one bit": flipped, "cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 0), "empty": {}, "the words themselves": []byte("anchor"),
	} {
		testkit.Must(0, os.WriteFile(file, content, 0o600))(t)
		later := &words{}
		if _, err := keeper(t, later, folder, key("a")).Restore(t.Context()); !errors.Is(err, snapshot.ErrSealed) || later.all() != "buoy" {
			t.Errorf("%s: %q, %v", reason, later.all(), err)
		}
	}
	testkit.Must(0, os.WriteFile(file, good, 0o600))(t)
	if later := new(words); testkit.Must(keeper(t, later, folder, key("a")).Restore(t.Context()))(t) != 2 {
		t.Errorf("as it was: %q", later.all())
	}
}

// TestNothingNewIsNotWritten: etcd is no place for the same again.
func TestNothingNewIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{}
		memory := new(words).learn("anchor")
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for range 3 {
			done.Go(func() { keeper(t, memory, store, key("a")).Run(ctx) })
			time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest: replicas do not start at once
		}
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of synctest
		if saves := store.count(); saves != 1 {
			t.Errorf("%d saves of the same", saves)
		}
		memory.learn("buoy")
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock of synctest
		if saves := store.count(); saves != 2 {
			t.Errorf("%d saves after something new", saves)
		}
		cancel()
		done.Wait()
	})
}

// counted keeps parts in memory.
type counted struct {
	mu    sync.Mutex
	parts [][]byte
	saves int
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saves
}

func (c *counted) Load(context.Context) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts, nil
}

func (c *counted) Save(_ context.Context, parts [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts, c.saves = parts, c.saves+1
	return nil
}

// shaky stores parts, and fails a given number of times.
type shaky struct {
	counted
	loads, conflicts int
}

var errAway = errors.New("connection refused")

func (s *shaky) Load(ctx context.Context) ([][]byte, error) {
	parts, _ := s.counted.Load(ctx)
	if s.loads > 0 {
		s.loads--
		return parts[:0], errAway
	}
	return parts, nil
}

func (s *shaky) Save(ctx context.Context, parts [][]byte) error {
	if s.conflicts > 0 {
		s.conflicts--
		return errors.New("another replica saves")
	}
	return s.counted.Save(ctx, parts)
}

// TestUnloadedPartsStay: a replica with few entries does not overwrite parts that it could
// not load, which may be the only copy.
func TestUnloadedPartsStay(t *testing.T) {
	sealer := testkit.Must(snapshot.NewSealer(key("a")))(t)
	for _, row := range []struct {
		reason string
		loads  int
		first  []byte
		then   string // saved after a minute
		last   string // and after two
	}{
		{"it is loaded", 0, testkit.Must(sealer.Seal([]byte("buoy")))(t), "anchor buoy", "anchor buoy"},
		{"it cannot be loaded for a minute", 13, testkit.Must(sealer.Seal([]byte("buoy")))(t), "buoy", "anchor buoy"},
		{"it can be loaded, and not be opened", 0, []byte("buoy"), "anchor", "anchor"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &shaky{counted: counted{parts: [][]byte{row.first}}, loads: row.loads}
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { keeper(t, new(words).learn("anchor"), store, key("a")).Run(ctx) })
			for _, want := range []string{row.then, row.last} {
				time.Sleep(time.Minute + time.Second) //nolint:forbidigo // the clock of synctest
				known := new(words)
				testkit.Must(keeper(t, known, &store.counted, key("a")).Restore(ctx))(t)
				if known.all() != want {
					t.Errorf("%s: %q is saved, want %q", row.reason, known.all(), want)
				}
			}
			cancel()
			done.Wait()
		})
	}
}

// TestLoadIsRetried: a replica that starts without a store loads the parts soon after.
func TestLoadIsRetried(t *testing.T) {
	sealer := testkit.Must(snapshot.NewSealer(key("a")))(t)
	for _, row := range []struct {
		reason, soon string
		loads        int
	}{
		{"at once", "buoy", 0},
		{"after five seconds", "buoy", 1},
		{"not yet", "", 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, memory := &shaky{counted: counted{parts: [][]byte{testkit.Must(sealer.Seal([]byte("buoy")))(t)}}, loads: row.loads}, &words{}
			k := keeper(t, memory, store, key("a"))
			if _, err := k.Restore(t.Context()); (err != nil) != (row.loads > 0) {
				t.Fatalf("%s: %v", row.reason, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { k.Run(ctx) })
			time.Sleep(6 * time.Second) //nolint:forbidigo // the clock of synctest
			if memory.all() != row.soon {
				t.Errorf("%s: %q is known", row.reason, memory.all())
			}
			cancel()
			done.Wait()
		})
	}
}

// TestRepeatedFailureIsReportedOnce: an API server may be away for hours.
func TestRepeatedFailureIsReportedOnce(t *testing.T) {
	for _, row := range []struct {
		reason string
		loads  int
		loaded bool
		told   int
	}{
		{"never loaded", 1 << 20, false, 1},
		{"loaded once, and reported each time since", 1 << 20, true, 10},
		{"nothing fails", 0, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, told := &shaky{}, 0
			k := testkit.Must(snapshot.New(snapshot.Options{
				Memory: &words{}, Store: store, Sealer: testkit.Must(snapshot.NewSealer(key("a")))(t), Room: 1 << 20, Parts: 8, Interval: time.Minute,
				Failed: func(error) { told++ },
			}))(t)
			if row.loaded {
				testkit.Must(k.Restore(t.Context()))(t)
			}
			store.loads = row.loads
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { k.Run(ctx) })
			time.Sleep(10*time.Minute + time.Second) //nolint:forbidigo // the clock of synctest
			synctest.Wait()
			if told != row.told {
				t.Errorf("%s: reported %d times, want %d", row.reason, told, row.told)
			}
			cancel()
			done.Wait()
		})
	}
}

// TestTheLastSaveIsTriedAgain: replicas that end at once save at once.
func TestTheLastSaveIsTriedAgain(t *testing.T) {
	for _, row := range []struct {
		reason           string
		loads, conflicts int
		want             string
	}{
		{"nothing fails", 0, 0, "buoy"},
		{"another replica saves twice", 0, 2, "buoy"},
		{"it cannot be loaded once", 1, 0, "buoy"},
		{"another replica saves without an end", 0, 1000, ""},
	} {
		store := &shaky{loads: row.loads, conflicts: row.conflicts}
		run(t, keeper(t, new(words).learn("buoy"), store, key("a")))
		known := new(words)
		testkit.Must(keeper(t, known, &store.counted, key("a")).Restore(t.Context()))(t)
		if known.all() != row.want {
			t.Errorf("%s: %q is saved, want %q", row.reason, known.all(), row.want)
		}
	}
}

// TestABadPartDoesNotTakeTheOthersAway has one that was sealed, and cannot be read.
func TestABadPartDoesNotTakeTheOthersAway(t *testing.T) {
	sealer := testkit.Must(snapshot.NewSealer(key("a")))(t)
	store := &counted{parts: [][]byte{testkit.Must(sealer.Seal([]byte("oh!")))(t), testkit.Must(sealer.Seal([]byte("buoy")))(t)}}
	later := &words{}
	n, err := keeper(t, later, store, key("a")).Restore(t.Context())
	if n != 1 || err == nil || errors.Is(err, snapshot.ErrSealed) || later.all() != "buoy" {
		t.Errorf("%d entries, %q, %v", n, later.all(), err)
	}
}

func TestFewerPartsLeaveNoFiles(t *testing.T) {
	path := t.TempDir()
	folder := testkit.Must(snapshot.NewFolder(path))(t)
	for _, n := range []int{3, 1, 0} {
		testkit.Must(0, folder.Save(t.Context(), make([][]byte, n)))(t)
		if files := testkit.Must(os.ReadDir(path))(t); len(files) != n || len(testkit.Must(folder.Load(t.Context()))(t)) != n {
			t.Errorf("%d files for %d parts", len(files), n)
		}
	}
}

// TestFolderReadsFiles, and waits for nothing else: a pipe has no writer.
func TestFolderReadsFiles(t *testing.T) {
	path := t.TempDir()
	folder := testkit.Must(snapshot.NewFolder(path))(t)
	if err := os.WriteFile(filepath.Join(path, "snapshot-0"), []byte("buoy"), 0o600); err != nil {
		t.Fatal(err)
	}
	if parts, err := folder.Load(t.Context()); err != nil || len(parts) != 1 {
		t.Errorf("of a file: %q, %v", parts, err)
	}
	if err := syscall.Mkfifo(filepath.Join(path, "snapshot-1"), 0o600); err != nil {
		t.Skip(err)
	}
	if parts, err := folder.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "is no file") || len(parts) != 1 {
		t.Errorf("of a pipe beside it: %q, %v", parts, err)
	}
}

func TestNewRefuses(t *testing.T) {
	good := snapshot.Options{
		Memory: &words{}, Store: &counted{}, Sealer: testkit.Must(snapshot.NewSealer(key("a")))(t), Room: 1, Parts: 1, Interval: time.Second, Failed: func(error) {},
	}
	if _, err := snapshot.New(good); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]func(*snapshot.Options){
		"no memory": func(o *snapshot.Options) { o.Memory = nil }, "no store": func(o *snapshot.Options) { o.Store = nil },
		"no sealer": func(o *snapshot.Options) { o.Sealer = nil }, "no error handler": func(o *snapshot.Options) { o.Failed = nil },
		"no room": func(o *snapshot.Options) { o.Room = 0 }, "more room than is read": func(o *snapshot.Options) { o.Room = snapshot.MaxPart + 1 },
		"no parts": func(o *snapshot.Options) { o.Parts = 0 }, "more parts than are read": func(o *snapshot.Options) { o.Parts = snapshot.MaxParts + 1 },
		"all the time": func(o *snapshot.Options) { o.Interval = time.Millisecond }, "hardly ever": func(o *snapshot.Options) { o.Interval = 25 * time.Hour },
	} {
		bad := good
		change(&bad)
		if _, err := snapshot.New(bad); err == nil {
			t.Errorf("%s: taken", reason)
		}
	}
	if _, err := snapshot.NewSealer(make([]byte, 15)); err == nil {
		t.Error("a short key is taken")
	}
	if _, err := snapshot.NewFolder(""); err == nil {
		t.Error("no folder is taken")
	}
}

func FuzzOpen(f *testing.F) {
	sealer := testkit.Must(snapshot.NewSealer(key("a")))(f)
	f.Add(testkit.Must(sealer.Seal([]byte("anchor")))(f))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if part, err := sealer.Open(raw); err == nil && !bytes.Equal(part, []byte("anchor")) {
			t.Errorf("opened as %q", part)
		}
	})
}

func Example() {
	sealer, err := snapshot.NewSealer([]byte("the key that the replicas share."))
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, err := sealer.Seal([]byte("app:v1 was proved"))
	if err != nil {
		fmt.Println(err)
		return
	}
	part, err := sealer.Open(sealed)
	fmt.Println(string(part), err)
	// Output: app:v1 was proved <nil>
}

package trusttest

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Target is the name of the one target.
const Target = "trusted_root.json"

// keysOfRole is the number of keys, and of required signatures, of root and targets.
const keysOfRole = 2

// Repository is a TUF repository. It is safe for concurrent use.
type Repository struct {
	mu      sync.Mutex
	keys    keys
	root    int64 // version
	version int64 // of everything else
	files   map[string][]byte
	stamps  map[int64][]byte // timestamps by their versions
	endless map[string]bool  // names of files
	first   []byte
}

// keys sign for every role.
type keys [keysOfRole]signature.Signer

func newKeys() (made keys, err error) {
	for i := range made {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return made, fmt.Errorf("make a key: %w", err)
		}
		made[i], err = signature.LoadSigner(private, crypto.Hash(0))
		if err != nil {
			return made, fmt.Errorf("make a key: %w", err)
		}
	}
	return made, nil
}

// New makes a repository without a target.
func New() (*Repository, error) {
	made, err := newKeys()
	if err != nil {
		return nil, err
	}
	r := &Repository{keys: made, files: map[string][]byte{}, stamps: map[int64][]byte{}, endless: map[string]bool{}, root: 1}
	r.first, err = rootOf(made, keysOfRole, 1, made)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Root is the first root.json, the initial trust of a client.
func (r *Repository) Root() []byte { return r.first }

// Files returns all files by name, except those without an end.
func (r *Repository) Files() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.files)
}

// Clone returns a copy, with which a holder of the current keys can publish on their own.
func (r *Repository) Clone() *Repository {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Repository{
		keys: r.keys, root: r.root, version: r.version, first: r.first,
		files: maps.Clone(r.files), stamps: maps.Clone(r.stamps), endless: maps.Clone(r.endless),
	}
}

// Publish makes content the target of the next version, with a fault.
func (r *Repository) Publish(content []byte, fault Fault) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch fault {
	case Rotated, SkippedRoot, UnrelatedRoot, NoThreshold:
		if err := r.rotate(fault); err != nil {
			return err
		}
	case OldSnapshot:
		if r.version < 2 {
			return errors.New("publish an old snapshot: want two versions before")
		}
	}
	r.version++
	until := time.Now().AddDate(0, 1, 0)
	if fault == Ended {
		until = time.Now().Add(-time.Hour)
	}
	clear(r.endless)
	if err := r.target(content, until, fault); err != nil {
		return err
	}
	snapshot, timestamp := metadata.Snapshot(until), metadata.Timestamp(until)
	snapshot.Signed.Version, timestamp.Signed.Version = r.version, r.version
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(r.version)
	shown := r.version
	if fault == OldSnapshot {
		shown -= 2
	}
	timestamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(shown)
	switch fault {
	case LongSnapshot:
		timestamp.Signed.Meta["snapshot.json"].Length = 1 << 40
	case LongTargets:
		snapshot.Signed.Meta["targets.json"].Length = 1 << 40
	}
	text, err := signed(snapshot, r.keys[:1])
	if err != nil {
		return err
	}
	r.files[fmt.Sprint(r.version, ".snapshot.json")] = text
	text, err = signed(timestamp, r.keys[:1])
	if err != nil {
		return err
	}
	r.files["timestamp.json"], r.stamps[r.version] = text, text
	r.endless["timestamp.json"] = fault == EndlessTimestamp
	return nil
}

// target writes the target and the metadata of targets.
func (r *Repository) target(content []byte, until time.Time, fault Fault) error {
	sum := sha256.Sum256(content)
	name := "targets/" + hex.EncodeToString(sum[:]) + "." + Target
	r.files[name] = content
	if fault == OtherTarget {
		r.files[name] = append([]byte{' '}, content[:max(0, len(content)-1)]...)
	}
	r.endless[name] = fault == EndlessTarget
	targets := metadata.Targets(until)
	file, err := metadata.TargetFile().FromBytes(Target, content)
	if err != nil {
		return fmt.Errorf("describe the target: %w", err)
	}
	if fault == LongTarget {
		file.Length = 1 << 40
	}
	targets.Signed.Targets[Target], targets.Signed.Version = file, r.version
	by := r.keys[:]
	switch fault {
	case OneSignature, OneKeyTwice:
		by = by[:1]
	case NoThreshold:
		by = nil
	}
	text, err := signed(targets, by)
	if err != nil {
		return err
	}
	if fault == OneKeyTwice {
		text = twice(text)
	}
	r.files[fmt.Sprint(r.version, ".targets.json")] = text
	return nil
}

// rotate publishes a next root with new keys, which sign everything from then on.
func (r *Repository) rotate(fault Fault) error {
	next, err := newKeys()
	if err != nil {
		return err
	}
	version, threshold, by := r.root+1, keysOfRole, r.keys
	switch fault {
	case SkippedRoot:
		version++
	case UnrelatedRoot:
		by = next
	case NoThreshold:
		threshold = 0
	}
	text, err := rootOf(next, threshold, version, by)
	if err != nil {
		return err
	}
	r.files[fmt.Sprint(r.root+1, ".root.json")] = text
	r.keys, r.root = next, r.root+1
	return nil
}

// Show serves the timestamp of an earlier version again, and so all of that version.
func (r *Repository) Show(version int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, ok := r.stamps[version]
	if !ok {
		return fmt.Errorf("show version %d: there is none", version)
	}
	r.files["timestamp.json"] = text
	return nil
}

// ServeHTTP serves the files.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	r.mu.Lock()
	text, ok := r.files[name]
	isEndless := r.endless[name]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, request)
		return
	}
	for {
		if _, err := w.Write(text); err != nil || !isEndless || request.Context().Err() != nil {
			return
		}
	}
}

// rootOf writes a root that names keys for every role. The previous keys and its own sign it.
func rootOf(named keys, threshold int, version int64, by keys) ([]byte, error) {
	root := metadata.Root(time.Now().AddDate(1, 0, 0))
	root.Signed.Version = version
	for _, one := range named {
		public, err := one.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("read a key: %w", err)
		}
		key, err := metadata.KeyFromPublicKey(public)
		if err != nil {
			return nil, fmt.Errorf("read a key: %w", err)
		}
		for _, role := range []string{"root", "timestamp", "snapshot", "targets"} {
			if err := root.Signed.AddKey(key, role); err != nil {
				return nil, fmt.Errorf("name a key: %w", err)
			}
		}
	}
	root.Signed.Roles["root"].Threshold, root.Signed.Roles["targets"].Threshold = keysOfRole, threshold
	signers := by[:]
	if by != named {
		signers = append(signers, named[:]...)
	}
	return signed(root, signers)
}

// signed signs metadata and writes it.
func signed[T metadata.Roles](m *metadata.Metadata[T], by []signature.Signer) ([]byte, error) {
	for _, one := range by {
		if _, err := m.Sign(one); err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
	}
	text, err := m.ToBytes(false)
	if err != nil {
		return nil, fmt.Errorf("write the signed document: %w", err)
	}
	return text, nil
}

// twice repeats the one signature of metadata.
func twice(text []byte) []byte {
	before, rest, _ := bytes.Cut(text, []byte(`"signatures":[`))
	one, after, _ := bytes.Cut(rest, []byte(`]`))
	return bytes.Join([][]byte{before, []byte(`"signatures":[`), one, []byte(`,`), one, []byte(`]`), after}, nil)
}

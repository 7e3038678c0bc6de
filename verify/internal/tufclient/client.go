package tufclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"

	"github.com/quaymaster/quaymaster/internal/file"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// Options describe a repository.
type Options struct {
	// URL is the repository's address; not used with Files.
	URL string
	// Root is the first root.json.
	Root []byte
	// Target is the name of the target; empty means trusted_root.json.
	Target string
	// Targets is the folder of the targets in the repository; empty means targets.
	Targets string
	// Files is the content of the repository by path; nil means that the repository is at URL.
	Files map[string][]byte
	// Folder stores the metadata; empty means that only the process keeps it.
	Folder string
	// HTTP sends the requests; it is required without Files.
	HTTP *http.Client
	// Parsing has a capacity of one. Clients with the same channel parse metadata one at a time, and do
	// not hold it while they read. nil means that others do not matter.
	Parsing chan struct{}
}

// Client fetches the target of one repository. A fetch accepts nothing older than an earlier one
// of the same Client, or of the same folder. It is safe for concurrent use: fetches are serial.
type Client struct {
	options Options

	mu    sync.Mutex
	roots map[string][]byte // verified ones by the names of their files
	floor floor
}

// floor is the oldest accepted state under the keys of timestamp and snapshot. Other keys begin
// anew, which is how a repository recovers from versions that an attacker raised (TUF 5.3.11).
type floor struct {
	keys                []string
	timestamp, snapshot int64
	meta                map[string]int64 // versions of targets and delegated roles, by their files (TUF 5.5.5)
}

// New returns a Client.
func New(o Options) *Client {
	if o.Files != nil {
		o.URL = carried
	}
	return &Client{options: o, roots: map[string][]byte{}}
}

// Fetch returns the target.
func (c *Client) Fetch(ctx context.Context) (content []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { // the server is untrusted: a policy chooses it
		if recovered := recover(); recovered != nil {
			content, err = nil, fmt.Errorf("its metadata cannot be read: %v", recovered)
		}
	}()
	f := &fetcher{ctx: ctx, options: &c.options, base: strings.TrimRight(c.options.URL, "/") + "/", left: maxFetch}
	defer f.end()
	if err := f.begin(); err != nil {
		return nil, err
	}
	newest, err := c.newestRoot(f)
	if err != nil {
		return nil, err
	}
	settings, err := config.New(f.base, newest)
	if err != nil {
		return nil, err
	}
	settings.Fetcher, settings.MaxDelegations = f, maxDelegations
	settings.RootMaxLength, settings.SnapshotMaxLength, settings.TargetsMaxLength = maxMetadata, maxMetadata, maxMetadata
	settings.DisableLocalCache = c.options.Folder == ""
	settings.LocalMetadataDir = c.folder()
	settings.LocalTargetsDir = filepath.Join(settings.LocalMetadataDir, "targets")
	if err := removeDamaged(settings.LocalMetadataDir); err != nil {
		return nil, err
	}
	client, err := updater.New(settings)
	if err != nil {
		return nil, err
	}
	if err := client.Refresh(); err != nil {
		return nil, err
	}
	if err := c.raise(client.GetTrustedMetadataSet()); err != nil {
		return nil, err
	}
	return target(client, cmp.Or(c.options.Target, "trusted_root.json"))
}

// target returns a target from the folder, or from the repository.
func target(client *updater.Updater, name string) ([]byte, error) {
	info, err := client.GetTargetInfo(name)
	if err != nil {
		return nil, fmt.Errorf("find the target %s: %w", name, err)
	}
	stored, content, err := client.FindCachedTarget(info, "")
	if err == nil && stored == "" {
		_, content, err = client.DownloadTarget(info, "", "")
	}
	if err != nil {
		return nil, fmt.Errorf("read the target %s: %w", name, err)
	}
	return content, nil
}

// folder is where the metadata is stored. Without one, it is a path that cannot exist: go-tuf
// reads its files also where storing is disabled.
func (c *Client) folder() string {
	if c.options.Folder == "" {
		return filepath.Join(os.DevNull, "none")
	}
	return filepath.Join(c.options.Folder, tuf.URLToPath(c.options.URL))
}

// newestRoot returns the newest root that a chain of roots connects with the first one (TUF 5.3).
// The chain is verified each time, so that a kept root counts for this first root only.
func (c *Client) newestRoot(f *fetcher) ([]byte, error) {
	if err := limits.Document(c.options.Root); err != nil {
		return nil, fmt.Errorf("read the first root.json: %w", err)
	}
	trusted, err := trustedmetadata.New(c.options.Root)
	if err != nil {
		return nil, fmt.Errorf("read the first root.json: %w", err)
	}
	newest := c.options.Root
	for size := 0; ; {
		name := fmt.Sprintf("%d.root.json", trusted.Root.Signed.Version+1)
		text, err := c.nextRoot(f, trusted, name)
		if err != nil {
			return nil, fmt.Errorf("update the root to %s: %w", name, err)
		}
		if text == nil {
			return newest, nil
		}
		size += len(text)
		if size > maxRoots {
			return nil, fmt.Errorf("the roots up to %s have more than %d bytes; configure a newer root.json as the first one", name, maxRoots)
		}
		newest = text
	}
}

// nextRoot makes the root of a name the trusted one, and returns it; nil if there is none.
func (c *Client) nextRoot(f *fetcher, trusted *trustedmetadata.TrustedMetadata, name string) ([]byte, error) {
	path := filepath.Join(c.folder(), "root_history", name)
	kept, ok := c.roots[name]
	if !ok {
		stored, err := limit.ReadFile(path, maxMetadata, "a stored root.json")
		kept, ok = stored, err == nil && limits.Document(stored) == nil
	}
	if ok {
		if _, err := trusted.UpdateRoot(kept); err == nil {
			c.roots[name] = kept
			return kept, nil
		} // it is damaged, or of another first root
	}
	text, err := f.DownloadFile(f.base+name, maxMetadata, 0)
	if status, failed := errors.AsType[*metadata.ErrDownloadHTTP](err); failed && status.StatusCode == http.StatusNotFound {
		f.absent = f.base + name // go-tuf accepts no root that is not kept here
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := trusted.UpdateRoot(text); err != nil {
		return nil, err
	}
	c.roots[name] = text
	if c.options.Folder == "" {
		return text, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return text, file.Replace(path, text)
}

// raise refuses a state older than an accepted one. go-tuf compares with a folder's metadata only.
func (c *Client) raise(now trustedmetadata.TrustedMetadata) error {
	var keys []string
	for _, role := range []string{metadata.TIMESTAMP, metadata.SNAPSHOT} {
		keys = append(append(keys, role), slices.Sorted(slices.Values(now.Root.Signed.Roles[role].KeyIDs))...)
	}
	next := floor{keys: keys, timestamp: now.Timestamp.Signed.Version, snapshot: now.Snapshot.Signed.Version, meta: map[string]int64{}}
	for name, file := range now.Snapshot.Signed.Meta {
		next.meta[name] = file.Version
	}
	if !slices.Equal(next.keys, c.floor.keys) {
		c.floor = next
		return nil
	}
	if next.timestamp < c.floor.timestamp || next.snapshot < c.floor.snapshot {
		return &metadata.ErrBadVersionNumber{Msg: fmt.Sprintf("timestamp %d and snapshot %d, want at least the accepted %d and %d",
			next.timestamp, next.snapshot, c.floor.timestamp, c.floor.snapshot)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.floor.meta)) {
		switch version, listed := next.meta[name]; {
		case !listed:
			return &metadata.ErrRepository{Msg: fmt.Sprintf("the snapshot does not list %s, which the accepted one does", name)}
		case version < c.floor.meta[name]:
			return &metadata.ErrBadVersionNumber{Msg: fmt.Sprintf("%s %d, want at least the accepted %d", name, version, c.floor.meta[name])}
		}
	}
	c.floor = next
	return nil
}

package tufclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// Bounds of what one repository transfers, in bytes after decompression. The public-good
// repository has some 15 roots of 6 KiB, and less than 30 KiB of other files for a fetch.
const (
	// maxMetadata bounds one file of metadata, a root.json among them: parsing takes many times as
	// much memory, and so does each file that stays parsed.
	maxMetadata = 128 << 10
	// maxRoots bounds the kept roots of a repository, which are in memory and in the folder.
	maxRoots = 512 << 10
	// maxTarget bounds the target.
	maxTarget = 512 << 10
	// maxFetch bounds all files of one fetch.
	maxFetch = 1 << 20
	// maxDelegations bounds the delegated roles of one fetch; all of their metadata is in memory.
	maxDelegations = 4
)

const (
	// carried is the address of a repository without one.
	carried = "https://repository.invalid"
	// packed is the folder of the repository in archives from TUF's tools, which
	// policy-controller's TrustRoots contain.
	packed = "repository/"
)

// fetcher is go-tuf's Fetcher for one fetch, on the given client or on files. It holds the context,
// because go-tuf has no parameter for one.
type fetcher struct {
	ctx     context.Context
	options *Options
	base    string // the repository's address with a slash
	absent  string // the address of the root after the newest one
	left    int64  // of maxFetch
	parses  bool   // holds Options.Parsing
}

// begin waits until no other metadata is parsed, and end lets others continue.
func (f *fetcher) begin() error {
	if f.options.Parsing == nil || f.parses {
		return nil
	}
	select {
	case f.options.Parsing <- struct{}{}:
		f.parses = true
		return nil
	case <-f.ctx.Done():
		return fmt.Errorf("wait for other repositories: %w", context.Cause(f.ctx))
	}
}

func (f *fetcher) end() {
	if f.parses {
		<-f.options.Parsing
		f.parses = false
	}
}

// DownloadFile implements go-tuf's Fetcher.
func (f *fetcher) DownloadFile(address string, most int64, _ time.Duration) ([]byte, error) {
	bound := int64(maxMetadata)
	target, isTarget := strings.CutPrefix(address, f.base+"targets/")
	if isTarget {
		bound = maxTarget
		if f.options.Targets != "" {
			address = f.base + strings.Trim(f.options.Targets, "/") + "/" + target
		}
	}
	if most > bound {
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s has a signed length of %d bytes, more than the bound of %d", address, most, bound)}
	}
	if address == f.absent {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: address}
	}
	f.end() // a slow server does not delay other repositories
	data, err := f.read(address, min(most, f.left))
	if err != nil {
		return nil, err
	}
	f.left -= int64(len(data))
	if err := f.begin(); err != nil {
		return nil, err
	}
	if isTarget {
		return data, nil
	}
	return data, limits.Document(data)
}

// read reads the file at an address, which has at most so many bytes.
func (f *fetcher) read(address string, most int64) ([]byte, error) {
	body, err := f.open(address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("%s has more than the expected %d bytes", address, most)}
	}
	return data, nil
}

// open returns the content of the file at an address.
func (f *fetcher) open(address string) (io.ReadCloser, error) {
	if f.options.Files != nil {
		name := strings.TrimPrefix(address, f.base)
		data, ok := f.options.Files[name]
		if !ok {
			data, ok = f.options.Files[packed+name]
		}
		if !ok {
			return nil, &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: address}
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.options.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // it was not read
		return nil, &metadata.ErrDownloadHTTP{StatusCode: response.StatusCode, URL: address}
	}
	return response.Body, nil
}

package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
)

// TokenFile authenticates the tokens in a file. Lines are token,name, or in Kubernetes' static
// token file format token,name,uid,"group1,group2"; lines that begin with # are comments. It is
// safe for concurrent use. Make one with NewTokenFile.
//
// A changed file is read within a second. If the file becomes unreadable, lookups fail: the old
// contents could include a token that was removed.
type TokenFile struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	read   time.Time // time of the last read
	sum    [sha256.Size]byte
	tokens []holder
	err    error
}

// holder is the owner of a token. The token itself is not stored, only its hash.
type holder struct {
	sum    [sha256.Size]byte
	user   string
	groups []string
}

// NewTokenFile reads a file of tokens. It rejects a file that others than its owner and group may
// read, or others than its owner may write (the volume of a Secret requires defaultMode: 0440). It
// also rejects tokens shorter than 16 characters and duplicate tokens. Now is the clock; nil means
// time.Now.
func NewTokenFile(path string, now func() time.Time) (*TokenFile, error) {
	if now == nil {
		now = time.Now
	}
	f := &TokenFile{path: path, now: now}
	_, err := f.current()
	return f, err
}

// Authenticate implements Authenticator. It compares the token with all entries in constant time.
func (f *TokenFile) Authenticate(_ context.Context, token string) (policy.User, error) {
	tokens, err := f.current()
	if err != nil {
		return policy.User{}, err
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range tokens {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], tokens[i].sum[:]), i, found)
	}
	if found < 0 {
		return policy.User{}, nil
	}
	return policy.User{Name: tokens[found].user, Groups: slices.Clone(tokens[found].groups)}, nil
}

// current returns the tokens of the file, which is read at most once a second.
func (f *TokenFile) current() ([]holder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if since := now.Sub(f.read); since >= 0 && since < fileAge {
		return f.tokens, f.err
	}
	f.read = now
	content, err := readTokens(f.path)
	if sum := sha256.Sum256(content); err == nil && (f.err != nil || f.tokens == nil || sum != f.sum) {
		f.sum = sum
		f.tokens, err = parseTokens(content)
	}
	f.err = err
	if err != nil {
		f.tokens, f.err = nil, fmt.Errorf("token file %s: %w", f.path, err)
	}
	return f.tokens, f.err
}

func readTokens(path string) ([]byte, error) {
	file, err := limit.OpenRegular(path)
	if err != nil {
		return nil, bare(err)
	}
	defer func() { _ = file.Close() }() // read only: no data can be lost
	info, err := file.Stat()
	if err != nil {
		return nil, bare(err)
	}
	if mode := info.Mode(); mode.Perm()&0o027 != 0 {
		return nil, fmt.Errorf("its mode is %s: only its owner and group may read it (use 0440, 0400 or 0600)", mode)
	}
	return limit.ReadAll(file, maxTokenFile, "the file")
}

// bare returns an error without the path, which the caller adds.
func bare(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// parseTokens reads lines of tokens. Its errors contain line numbers, never tokens.
func parseTokens(content []byte) ([]holder, error) {
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord, reader.Comment, reader.TrimLeadingSpace = -1, '#', true
	lines, err := reader.ReadAll()
	if err != nil {
		if p, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, fmt.Errorf("line %d: %w", p.Line, p.Err)
		}
		return nil, errors.New("it is not a list of token,name")
	}
	if len(lines) == 0 || len(lines) > maxTokens {
		return nil, fmt.Errorf("%d tokens: must be 1 to %d", len(lines), maxTokens)
	}
	tokens := make([]holder, 0, len(lines))
	for i, fields := range lines {
		one, err := newHolder(fields)
		if err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if slices.ContainsFunc(tokens, func(other holder) bool { return other.sum == one.sum }) {
			return nil, fmt.Errorf("token %d is a duplicate", i+1)
		}
		tokens = append(tokens, one)
	}
	return tokens, nil
}

func newHolder(fields []string) (holder, error) {
	if len(fields) < 2 || len(fields) > 4 {
		return holder{}, errors.New(`want token,name or token,name,uid,"groups"`)
	}
	token, user := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1])
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' }
	switch {
	case len(token) < minToken || len(token) > maxToken:
		return holder{}, fmt.Errorf("must be %d to %d random characters", minToken, maxToken)
	case strings.ContainsFunc(token, isOdd):
		return holder{}, errors.New("must be ASCII characters without spaces")
	case user == "":
		return holder{}, errors.New("the name is empty")
	}
	one := holder{sum: sha256.Sum256([]byte(token)), user: user}
	if len(fields) == 4 {
		for group := range strings.SplitSeq(fields[3], ",") {
			group = strings.TrimSpace(group)
			if group != "" {
				one.groups = append(one.groups, group)
			}
		}
	}
	return one, nil
}

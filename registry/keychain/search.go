package keychain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/redact"
)

// origin is where a Secret is named.
type origin int

const (
	ofPod origin = iota
	ofAccount
	ofPolicy
	ofGateway
)

// secretSource is a Secret and where it is named.
type secretSource struct {
	origin  origin
	secret  secretName
	account string // of ofAccount
}

// String describes the source in messages. The Secrets of a workload are named without their
// namespace: two workloads that share a credential share an answer, and must not learn each other's
// namespace.
func (p secretSource) String() string {
	switch p.origin {
	case ofPod:
		return fmt.Sprintf("imagePullSecret %q", shorten(p.secret.name))
	case ofAccount:
		return fmt.Sprintf("imagePullSecret %q of the service account %q", shorten(p.secret.name), shorten(p.account))
	case ofPolicy:
		return fmt.Sprintf("the policy's Secret %s/%s", p.secret.namespace, p.secret.name)
	default:
		return fmt.Sprintf("the gateway's Secret %s/%s", p.secret.namespace, p.secret.name)
	}
}

// isForeign reports whether the author of the workload writes the Secret.
func (p secretSource) isForeign() bool { return p.origin == ofPod || p.origin == ofAccount }

// search is the result of the lookups for one repository.
type search struct {
	repository image.Repository

	credentials []credential // of Secrets, in the order of the tries
	provider    string       // has a credential; its name

	notes         []string
	failedLookups []error
}

// credential is a credential in a Secret.
type credential struct {
	source secretSource
	bound  *bound
	entry  entry
	rank   int // among the entries of bound for the repository
}

// choices are the credentials, and after them the entries of the same Secrets that are for
// other repositories alone: a policy may keep evidence there.
func (s *search) choices() []credential {
	all := slices.Clone(s.credentials)
	for _, f := range s.credentials {
		if f.rank > 0 {
			continue
		}
		for rank := len(fitting(f.bound.entries, s.repository.Path())); rank < min(len(f.bound.entries), maxTried+1); rank++ {
			all = append(all, credential{source: f.source, bound: f.bound, rank: rank})
		}
	}
	return all
}

// bounds are the Secrets of the credentials, each once.
func (s *search) bounds() []*bound {
	var all []*bound
	for _, f := range s.credentials {
		if !slices.Contains(all, f.bound) {
			all = append(all, f.bound)
		}
	}
	return all
}

// isForeign reports whether the credentials are the workload's.
func (s *search) isForeign() bool {
	return slices.ContainsFunc(s.credentials, func(f credential) bool { return f.source.isForeign() })
}

// found reports whether a source has a credential.
func (s *search) found() bool { return len(s.credentials) > 0 || s.provider != "" }

func (s *search) note(p secretSource, err error) {
	s.notes = append(s.notes, fmt.Sprintf("%s %v", p, err))
}

func (s *search) missed(what string, err error) {
	s.failedLookups = append(s.failedLookups, &lookupError{subject: what, err: err})
}

// lookupError reports a failed lookup.
type lookupError struct {
	subject string
	err     error
}

// Error implements error.
func (e *lookupError) Error() string {
	return e.subject + " could not be looked up: " + shortenCause(redact.Text(e.err.Error()))
}

// Unwrap returns the cause.
func (e *lookupError) Unwrap() error { return e.err }

func shortenCause(text string) string {
	const most = 300
	return limit.Text(strings.Join(strings.Fields(text), " "), most)
}

// secrets reads the Secrets of one origin. All entries for the repository are tried, as by the kubelet:
// the most specific first, then in the order of the Secrets.
func (k *Keychain) secrets(ctx context.Context, s *search, sources []secretSource) {
	for i, p := range sources {
		if p.secret.name == "" {
			continue // the kubelet ignores an empty name, too
		}
		if i >= maxSecrets {
			s.missed(p.String(), &image.Error{Kind: image.Bound, Op: "look up", On: "Secrets", Err: fmt.Errorf("at most %d Secrets are looked up", maxSecrets)})
			break
		}
		if err := p.secret.check(); err != nil {
			s.note(p, err)
			continue
		}
		page, err := k.secretCache.read(ctx, p.secret)
		switch {
		case isMissing(err):
			s.note(p, errors.New("does not exist"))
			continue
		case err != nil:
			s.missed(p.String(), err)
			continue
		case page.err != nil:
			s.note(p, page.err)
			continue
		}
		held := k.secretCache.forHost(page, s.repository.Registry())
		if held == nil {
			continue
		}
		if slices.ContainsFunc(s.credentials, func(f credential) bool { return f.bound.scope == held.scope }) {
			continue
		}
		for rank, mine := range fitting(held.entries, s.repository.Path()) {
			s.credentials = append(s.credentials, credential{source: p, bound: held, entry: mine, rank: rank})
		}
	}
	slices.SortStableFunc(s.credentials, func(a, b credential) int { return a.entry.compare(b.entry) })
	if len(s.credentials) > maxTried {
		s.missed(s.credentials[maxTried].source.String(), tooMany(s.repository.String()))
		s.credentials = s.credentials[:maxTried]
	}
}

// compare sorts the more specific entry first.
func (e entry) compare(other entry) int {
	switch {
	case isGlob(e.host) == isGlob(other.host):
		return len(other.prefix) - len(e.prefix)
	case isGlob(e.host):
		return 1
	}
	return -1
}

// check refuses invalid names, since names become URLs.
func (n secretName) check() error {
	for _, part := range []string{n.namespace, n.name} {
		if part == "" || len(part) > 253 || strings.ContainsAny(part, "/%?#\\ ") || part == "." || part == ".." {
			return errors.New("is no name of a Secret")
		}
	}
	return nil
}

// isMissing reports whether the error is "not found".
func isMissing(err error) bool { return image.KindOf(err) == image.NotFound }

// workload looks up the Secrets of the pod and of its service account.
func (k *Keychain) workload(ctx context.Context, s *search, request Request) {
	if k.config.Secrets == nil {
		return
	}
	podSources := make([]secretSource, len(request.PullSecrets))
	for i, name := range request.PullSecrets {
		podSources[i] = secretSource{origin: ofPod, secret: secretName{request.Namespace, name}}
	}
	k.secrets(ctx, s, podSources)
	if s.found() {
		return
	}
	if request.ServiceAccount == "" || k.config.Accounts == nil {
		return
	}
	names, err := k.config.Accounts.PullSecrets(ctx, request.Namespace, request.ServiceAccount)
	switch {
	case isMissing(err):
		s.notes = append(s.notes, fmt.Sprintf("the service account %q does not exist", shorten(request.ServiceAccount)))
		return
	case err != nil:
		s.missed(fmt.Sprintf("the service account %q", shorten(request.ServiceAccount)), err)
		return
	}
	var sources []secretSource
	for _, name := range names {
		if !slices.Contains(request.PullSecrets, name) { // a pod's were looked up above
			sources = append(sources, secretSource{origin: ofAccount, secret: secretName{request.Namespace, name}, account: request.ServiceAccount})
		}
	}
	k.secrets(ctx, s, sources)
}

// secretSources reads names of the form namespace/name.
func secretSources(of origin, names []string) ([]secretSource, error) {
	var sources []secretSource
	for _, written := range names {
		namespace, name, _ := strings.Cut(written, "/")
		p := secretSource{origin: of, secret: secretName{namespace, name}}
		if err := p.secret.check(); err != nil {
			return nil, fmt.Errorf("the Secret %q: want namespace/name", shorten(written))
		}
		sources = append(sources, p)
	}
	return sources, nil
}

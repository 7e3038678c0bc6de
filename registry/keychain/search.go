package keychain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/redact"
)

// owner is the origin of a Secret's name.
type owner int

const (
	ofPod owner = iota
	ofAccount
	ofPolicy
	ofGateway
)

// place is a Secret and the origin of its name.
type place struct {
	owner   owner
	secret  secretName
	account string // of ofAccount
}

// String names the place in messages. The Secrets of a workload are named without their
// namespace: two workloads that share a credential share an answer, and must not learn
// each other's namespace.
func (p place) String() string {
	switch p.owner {
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
func (p place) isForeign() bool { return p.owner == ofPod || p.owner == ofAccount }

// search is the result of the lookups for one repository.
type search struct {
	repository image.Repository

	finds    []find // credentials of Secrets, as they are tried
	provider string // has a credential; its name

	notes    []string
	unlooked []error // failed lookups
}

// find is a credential in a Secret.
type find struct {
	place place
	bound *bound
	entry entry
	rank  int // among the entries of bound for the repository
}

// choices are the finds, and after them the entries of the same Secrets that are for
// other repositories alone: a policy may keep evidence there.
func (s *search) choices() []find {
	all := slices.Clone(s.finds)
	for _, f := range s.finds {
		if f.rank > 0 {
			continue
		}
		for rank := len(fitting(f.bound.entries, s.repository.Path())); rank < min(len(f.bound.entries), maxTried+1); rank++ {
			all = append(all, find{place: f.place, bound: f.bound, rank: rank})
		}
	}
	return all
}

// bounds are the Secrets of the finds, each once.
func (s *search) bounds() []*bound {
	var all []*bound
	for _, f := range s.finds {
		if !slices.Contains(all, f.bound) {
			all = append(all, f.bound)
		}
	}
	return all
}

// isForeign reports whether the credentials are the workload's.
func (s *search) isForeign() bool {
	return slices.ContainsFunc(s.finds, func(f find) bool { return f.place.isForeign() })
}

// found reports whether a place has a credential.
func (s *search) found() bool { return len(s.finds) > 0 || s.provider != "" }

func (s *search) note(p place, err error) {
	s.notes = append(s.notes, fmt.Sprintf("%s %v", p, err))
}

func (s *search) missed(what string, err error) {
	s.unlooked = append(s.unlooked, &unlookedError{place: what, err: err})
}

// unlookedError reports a failed lookup.
type unlookedError struct {
	place string
	err   error
}

// Error implements error.
func (e *unlookedError) Error() string {
	return e.place + " could not be looked up: " + shortenCause(redact.Text(e.err.Error()))
}

// Unwrap returns the cause.
func (e *unlookedError) Unwrap() error { return e.err }

func shortenCause(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// secrets looks through the Secrets of one owner. All entries for the repository are
// tried, as the kubelet does: the most specific first, then in the order of the Secrets.
func (k *Keychain) secrets(ctx context.Context, s *search, places []place) {
	for i, p := range places {
		if p.secret.name == "" {
			continue // the kubelet overlooks an empty name, too
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
		if slices.ContainsFunc(s.finds, func(f find) bool { return f.bound.scope == held.scope }) {
			continue
		}
		for rank, mine := range fitting(held.entries, s.repository.Path()) {
			s.finds = append(s.finds, find{place: p, bound: held, entry: mine, rank: rank})
		}
	}
	slices.SortStableFunc(s.finds, func(a, b find) int { return a.entry.compare(b.entry) })
	if len(s.finds) > maxTried {
		s.missed(s.finds[maxTried].place.String(), tooMany(s.repository.String()))
		s.finds = s.finds[:maxTried]
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
	ofThePod := make([]place, len(request.PullSecrets))
	for i, name := range request.PullSecrets {
		ofThePod[i] = place{owner: ofPod, secret: secretName{request.Namespace, name}}
	}
	k.secrets(ctx, s, ofThePod)
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
	var places []place
	for _, name := range names {
		if !slices.Contains(request.PullSecrets, name) { // a pod's were looked up above
			places = append(places, place{owner: ofAccount, secret: secretName{request.Namespace, name}, account: request.ServiceAccount})
		}
	}
	k.secrets(ctx, s, places)
}

// placesOf reads names of the form namespace/name.
func placesOf(who owner, names []string) ([]place, error) {
	var places []place
	for _, written := range names {
		namespace, name, _ := strings.Cut(written, "/")
		p := place{owner: who, secret: secretName{namespace, name}}
		if err := p.secret.check(); err != nil {
			return nil, fmt.Errorf("the Secret %q: want namespace/name", shorten(written))
		}
		places = append(places, p)
	}
	return places, nil
}

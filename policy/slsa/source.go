package slsa

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/attest/predicate"
	"github.com/quaymaster/quaymaster/verify"
)

// Source is a repository, normalised, and a git reference; either may be empty.
type Source struct{ Repository, Ref string }

// ParseSource normalises the URI of a repository: without git+ before https:// or ssh://, without .git
// at the end, and with the host in lower case. A text without a scheme has https. A reference follows @
// in the path, or #. URIs with a user, such as one with a password, and other schemes are refused.
func ParseSource(text string) (Source, error) {
	full := strings.TrimPrefix(text, "git+")
	if !strings.Contains(full, "://") {
		full = "https://" + full
	}
	u, err := url.Parse(full)
	switch {
	case err != nil:
		return Source{}, fmt.Errorf("source %q is no URI", text)
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "git":
		return Source{}, fmt.Errorf("source %q: want a repository by https", text)
	case u.Host == "" || u.User != nil || u.RawQuery != "":
		return Source{}, fmt.Errorf("source %q: want a host and a path, without a user and a query", text)
	}
	path, ref, _ := strings.Cut(u.EscapedPath(), "@")
	if u.Fragment != "" && ref == "" {
		ref = u.Fragment
	}
	path = strings.TrimSuffix(path, ".git")
	if strings.Trim(path, "/") == "" {
		return Source{}, fmt.Errorf("source %q names no repository", text)
	}
	return Source{Repository: u.Scheme + "://" + strings.ToLower(u.Host) + path, Ref: ref}, nil
}

// String returns the repository and the reference, as provenance writes them.
func (s Source) String() string {
	if s.Ref == "" {
		return s.Repository
	}
	return s.Repository + "@" + s.Ref
}

// sourcesOf returns the sources that provenance names for the build itself, all of which must match:
// where the build is defined, and the first git repository among the dependencies. Tekton's build is
// defined by a pipeline that any repository may hold, so that there the dependencies count, all of them.
func sourcesOf(p predicate.Provenance) (list []string) {
	isTekton := strings.Contains(p.BuildType, "tekton.dev/")
	if !isTekton {
		list = definitions(p)
	}
	isDefined := len(list) > 0
	for _, m := range p.Materials {
		definesTask := isTekton && (m.Name == "pipeline" || m.Name == "task" || m.Name == "pipelineTask" || m.URI == p.ConfigSource.URI)
		if !isRepository(m.URI) || definesTask {
			continue
		}
		list = append(list, m.URI)
		if isDefined {
			break
		}
	}
	return list
}

// definitions are the repositories that define the build: v0.2's configSource, and in v1 the external
// parameters of GitHub (workflow), GitLab (source), Cloud Build (buildConfigSource) and BuildKit (configSource).
func definitions(p predicate.Provenance) (list []string) {
	if p.ConfigSource.URI != "" {
		return []string{p.ConfigSource.URI}
	}
	parameters, _ := p.Parameters.(map[string]any)
	text := func(in map[string]any, name string) string {
		value, _ := in[name].(string)
		return value
	}
	if source := text(parameters, "source"); source != "" {
		list = append(list, source)
	}
	for _, name := range []string{"workflow", "buildConfigSource", "configSource"} {
		place, _ := parameters[name].(map[string]any)
		repository, ref := text(place, "repository"), text(place, "ref")
		switch uri := text(place, "uri"); {
		case repository != "" && ref != "":
			list = append(list, repository+"@"+ref)
		case repository != "":
			list = append(list, repository)
		case uri != "":
			list = append(list, uri)
		}
	}
	return list
}

// isRepository reports whether a dependency is a git repository, and no image, file or package.
func isRepository(uri string) bool {
	path, _, _ := strings.Cut(uri, "#")
	return strings.HasPrefix(uri, "git+") || strings.HasPrefix(uri, "https://") && strings.HasSuffix(path, ".git")
}

// compare compares the required source with those of provenance, and with that of the certificate, which
// the issuer of the identity writes and not the build.
func compare(want Source, p predicate.Provenance, signer verify.Signer) (found Source, miss *Miss) {
	if want == (Source{}) {
		return Source{}, nil
	}
	wrong := func(what, found string) *Miss {
		return &Miss{Code: WrongSource, Message: "the image was built from another source, by " + what, Expected: want.String(), Found: quoted(found)}
	}
	list := sourcesOf(p)
	if len(list) == 0 {
		return Source{}, wrong("its provenance", "")
	}
	refs := 0
	for _, text := range list {
		one, err := ParseSource(text)
		if err != nil || want.Repository != "" && one.Repository != want.Repository || want.Ref != "" && one.Ref != "" && one.Ref != want.Ref {
			return Source{}, wrong("its provenance", text)
		}
		if one.Ref != "" {
			refs++
		}
		if found.Ref == "" {
			found = one
		}
	}
	repository, ref := signer.Extensions["sourceRepositoryURI"], signer.Extensions["sourceRepositoryRef"]
	certified, err := ParseSource(repository)
	switch {
	case repository != "" && want.Repository != "" && (err != nil || certified.Repository != want.Repository):
		return Source{}, wrong("the certificate of the signer", repository)
	case ref != "" && want.Ref != "" && ref != want.Ref:
		return Source{}, wrong("the certificate of the signer", repository+"@"+ref)
	case want.Ref != "" && refs == 0 && ref == "":
		return Source{}, wrong("its provenance", found.String())
	}
	return found, nil
}

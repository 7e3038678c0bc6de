package keychain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry"
)

// The types of Secrets that hold a docker configuration, and their keys.
const (
	typeConfig = "kubernetes.io/dockerconfigjson"
	keyConfig  = ".dockerconfigjson"
	typeLegacy = "kubernetes.io/dockercfg"
	keyLegacy  = ".dockercfg"
)

// File is a docker configuration: credentials by host and path. Only its own entries are
// used: credential stores and helpers that it names would be programs to run. It satisfies
// authn.Keychain, and is never changed.
type File struct {
	exact map[string][]entry // by host, longer paths first
	globs []entry            // longer paths first
}

// entry is the credential for a host and the paths that begin with prefix.
type entry struct {
	host   string // normalised; labels of a glob may hold * ? [a-z]
	prefix string // "" or from "/" on
	auth   authn.AuthConfig
}

// ParseFile reads a docker configuration, config.json of at most 1 MiB.
func ParseFile(data []byte) (*File, error) {
	var file struct {
		Auths map[string]written `json:"auths"`
	}
	if err := decode(data, &file); err != nil {
		return nil, err
	}
	return newFile(file.Auths)
}

// ParseSecret reads the docker configuration in a Secret of the given type,
// kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. Errors hold nothing
// of its content but hosts.
func ParseSecret(kind string, data map[string][]byte) (*File, error) {
	content, err := contentOf(kind, data)
	if err != nil {
		return nil, err
	}
	return parseContent(kind, content)
}

// contentOf picks the configuration out of a Secret.
func contentOf(kind string, data map[string][]byte) ([]byte, error) {
	key := keyConfig
	switch kind {
	case typeConfig:
	case typeLegacy:
		key = keyLegacy
	default:
		return nil, fmt.Errorf("is of type %q, not %s", shorten(kind), typeConfig)
	}
	if len(data[key]) == 0 {
		return nil, fmt.Errorf("has no %s", key)
	}
	return data[key], nil
}

func parseContent(kind string, content []byte) (*File, error) {
	if kind == typeConfig {
		return ParseFile(content)
	}
	var auths map[string]written
	if err := decode(content, &auths); err != nil {
		return nil, err
	}
	return newFile(auths)
}

// written is an entry of the file.
type written struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

func decode(data []byte, into any) error {
	if len(data) > maxFile {
		return fmt.Errorf("holds a docker configuration of more than %d bytes", maxFile)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New("holds no readable docker configuration") // err may quote a secret
	}
	return nil
}

func newFile(auths map[string]written) (*File, error) {
	if len(auths) > maxEntries {
		return nil, fmt.Errorf("holds credentials for more than %d hosts", maxEntries)
	}
	file := &File{exact: map[string][]entry{}}
	for _, where := range slices.Sorted(maps.Keys(auths)) { // equal places in one order: "https://host" and "host" are two
		auth, err := auths[where].config()
		if err != nil {
			return nil, fmt.Errorf("the entry for %q: %w", shorten(where), err)
		}
		host, prefix, ok := cutLocation(where)
		if !ok || auth == (authn.AuthConfig{}) {
			continue // the credential is kept elsewhere, or the address is empty
		}
		e := entry{host: host, prefix: prefix, auth: auth}
		if isGlob(host) {
			file.globs = append(file.globs, e)
		} else {
			file.exact[host] = append(file.exact[host], e)
		}
	}
	for _, entries := range file.exact {
		slices.SortStableFunc(entries, moreSpecific)
	}
	slices.SortStableFunc(file.globs, moreSpecific)
	return file, nil
}

// config decodes "auth", which goes before user name and password, as the
// kubelet does: base64 with or without padding.
func (w written) config() (authn.AuthConfig, error) {
	config := authn.AuthConfig{
		Username: w.Username, Password: w.Password, IdentityToken: w.IdentityToken, RegistryToken: w.RegistryToken,
	}
	if w.Auth == "" {
		return config, nil
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(w.Auth), "="))
	if err != nil {
		return authn.AuthConfig{}, errors.New(`"auth" is not base64`)
	}
	user, password, ok := strings.Cut(string(plain), ":")
	if !ok {
		return authn.AuthConfig{}, errors.New(`"auth" is not user:password in base64`)
	}
	config.Username, config.Password = user, strings.Trim(password, "\x00") // some writers pad
	return config, nil
}

// cutLocation brings an entry's key, a host or a URL, to a normalised host and
// a path. The versions of the protocol (/v1/, /v2/) are no path.
func cutLocation(where string) (host, prefix string, ok bool) {
	rest := where
	for _, scheme := range []string{"https://", "http://"} {
		if after, found := strings.CutPrefix(rest, scheme); found {
			rest = after
			break
		}
	}
	host, prefix, _ = strings.Cut(rest, "/")
	if host == "" || strings.ContainsAny(rest, "@#%\\ \t\r\n") {
		return "", "", false
	}
	for _, version := range []string{"v1", "v2"} {
		if prefix == version || strings.HasPrefix(prefix, version+"/") {
			prefix = strings.TrimPrefix(prefix[len(version):], "/")
			break
		}
	}
	if prefix != "" {
		prefix = "/" + prefix
	}
	return image.NormalRegistry(host), prefix, true
}

// isGlob reports whether a host has wildcards. The brackets of an IPv6 address
// are none.
func isGlob(host string) bool {
	inside, _, _ := strings.Cut(host, "]")
	isAddress := strings.HasPrefix(inside, "[") && strings.Contains(inside, ":")
	return !isAddress && strings.ContainsAny(host, "*?[")
}

// moreSpecific orders entries: longer paths first, then by name.
func moreSpecific(a, b entry) int {
	if d := len(b.prefix) - len(a.prefix); d != 0 {
		return d
	}
	return strings.Compare(a.host+a.prefix, b.host+b.prefix)
}

// forHost returns the entries for a registry, the most specific first: a host
// that is written out goes before a wildcard.
func (f *File) forHost(host string) []entry {
	entries := f.exact[host]
	for _, e := range f.globs {
		if matchesHost(e.host, host) {
			entries = append(slices.Clip(entries), e)
		}
	}
	return entries
}

// isFor reports whether an entry is for a registry.
func (e entry) isFor(host string) bool {
	if isGlob(e.host) {
		return matchesHost(e.host, host)
	}
	return e.host == host
}

// matchesHost compares label by label, so that a wildcard stays within one; a
// broken wildcard matches nothing. Ports are equal or both absent.
func matchesHost(glob, host string) bool {
	glob, globPort := cutPort(glob)
	host, port := cutPort(host)
	if globPort != port || strings.Count(glob, ".") != strings.Count(host, ".") {
		return false
	}
	for label := range strings.SplitSeq(glob, ".") {
		var mine string
		mine, host, _ = strings.Cut(host, ".")
		if ok, _ := path.Match(label, mine); !ok {
			return false
		}
	}
	return true
}

func cutPort(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// fits reports whether a repository's path begins with the entry's. As with the
// kubelet, "/team" is also the beginning of "/team2".
func (e entry) fits(repository string) bool {
	return e.prefix == "" || strings.HasPrefix(repository, e.prefix[1:])
}

// fitting returns the entries for a repository in the order in which they are tried,
// each credential once.
func fitting(entries []entry, repository string) []entry {
	var found []entry
	for _, e := range entries {
		if e.fits(repository) && !slices.ContainsFunc(found, func(other entry) bool { return other.auth == e.auth }) {
			found = append(found, e)
		}
	}
	return found
}

// Resolve implements authn.Keychain, with the narrowest entry alone. Sources has all.
func (f *File) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return choice{of: f}.Resolve(target)
}

// Sources returns a source for each entry that may be tried for one repository, the
// narrowest first, as the kubelet tries them.
func (f *File) Sources(name string) []registry.Source {
	most := 1
	for _, entries := range f.exact {
		most = max(most, len(entries))
	}
	return ranks(name, f, most+len(f.globs))
}

// candidates implements list.
func (f *File) candidates(_ context.Context, repository, host string) ([]entry, error) {
	return fitting(f.forHost(host), repository), nil
}

// list has the entries for a repository, the narrowest first.
type list interface {
	candidates(ctx context.Context, repository, host string) ([]entry, error)
}

// choice is the credential of one rank in a list.
type choice struct {
	of   list
	rank int
}

// Resolve implements authn.Keychain.
func (c choice) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return c.ResolveContext(context.Background(), target)
}

// ResolveContext implements authn.ContextKeychain. The rank beyond the bound is an
// error where there are more entries, so that a refusal is not taken for one of all.
func (c choice) ResolveContext(ctx context.Context, target authn.Resource) (authn.Authenticator, error) {
	repository, host := repositoryOf(target)
	entries, err := c.of.candidates(ctx, repository, host)
	switch {
	case err != nil:
		return nil, err
	case c.rank >= len(entries):
		return authn.Anonymous, nil
	case c.rank >= maxTried:
		return nil, tooMany(target.String())
	}
	return authn.FromConfig(entries[c.rank].auth), nil
}

// Entry implements registry.Entries: the host and path of the entry, unless it is the only
// one and for the whole host.
func (c choice) Entry(ctx context.Context, target authn.Resource) string {
	repository, host := repositoryOf(target)
	entries, err := c.of.candidates(ctx, repository, host)
	if err != nil || c.rank >= len(entries) {
		return ""
	}
	if e := entries[c.rank]; len(entries) > 1 || e.prefix != "" || isGlob(e.host) {
		return shorten(e.host + e.prefix)
	}
	return ""
}

// ranks returns the choices of a list with at most a number of entries for one
// repository, and one beyond the bound.
func ranks(name string, of list, most int) []registry.Source {
	var sources []registry.Source
	for rank := range min(most, maxTried+1) {
		sources = append(sources, registry.Source{Name: name, Keychain: choice{of: of, rank: rank}})
	}
	return sources
}

func tooMany(repository string) error {
	return &image.Error{Kind: image.Bound, Op: "look for the credential of", On: repository, Err: fmt.Errorf("at most %d credentials are tried", maxTried)}
}

// repositoryOf brings a keychain's resource back to our names.
func repositoryOf(target authn.Resource) (repository, host string) {
	repository = strings.TrimPrefix(strings.TrimPrefix(target.String(), target.RegistryStr()), "/")
	return repository, image.NormalRegistry(target.RegistryStr())
}

// shorten keeps foreign text in a message readable.
func shorten(s string) string {
	const most = 100
	return limit.Text(s, most)
}

package keychain

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
)

// The types of Secrets that hold a docker configuration, and their keys.
const (
	typeConfig = "kubernetes.io/dockerconfigjson"
	keyConfig  = ".dockerconfigjson"
	typeLegacy = "kubernetes.io/dockercfg"
	keyLegacy  = ".dockercfg"
)

// File is a docker configuration: credentials by host and path. Only what
// stands in it is used; credential stores and helpers that it names would be
// programs to run. It satisfies authn.Keychain, and is never changed.
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

// written is an entry as it stands in the file.
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
	for where, what := range auths {
		auth, err := what.config()
		if err != nil {
			return nil, fmt.Errorf("the entry for %q: %w", shorten(where), err)
		}
		host, prefix, ok := cutLocation(where)
		if !ok || auth == (authn.AuthConfig{}) {
			continue // a host whose credential is kept elsewhere, or an address of nothing
		}
		e := entry{host: host, prefix: prefix, auth: auth}
		if isGlob(host) {
			file.globs = append(file.globs, e)
		} else {
			file.exact[host] = append(file.exact[host], e)
		}
	}
	for _, entries := range file.exact {
		slices.SortFunc(entries, moreSpecific)
	}
	slices.SortFunc(file.globs, moreSpecific)
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

// pick returns the first entry that a repository's path begins with, or nil.
// As with the kubelet, "/team" is also the beginning of "/team2".
func pick(entries []entry, repository string) *entry {
	for i := range entries {
		prefix := entries[i].prefix
		if prefix == "" || strings.HasPrefix(repository, prefix[1:]) {
			return &entries[i]
		}
	}
	return nil
}

// Resolve implements authn.Keychain.
func (f *File) Resolve(target authn.Resource) (authn.Authenticator, error) {
	repository, host := repositoryOf(target)
	if e := pick(f.forHost(host), repository); e != nil {
		return authn.FromConfig(e.auth), nil
	}
	return authn.Anonymous, nil
}

// repositoryOf brings a keychain's resource back to our names.
func repositoryOf(target authn.Resource) (repository, host string) {
	repository = strings.TrimPrefix(strings.TrimPrefix(target.String(), target.RegistryStr()), "/")
	return repository, image.NormalRegistry(target.RegistryStr())
}

// shorten keeps foreign text in a message readable.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

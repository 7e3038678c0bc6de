package image

import (
	"net/netip"
	"slices"
	"strings"
)

// otherRegistries returns equivalent names of a registry host that follow from its form, so that
// another name of the registry does not evade policies: Amazon ECR's (plain, FIPS, and both with
// IPv6), Amazon ECR Public's, and an IPv4 address that is written as IPv6. It does not resolve DNS
// aliases.
func otherRegistries(host string) []string {
	if strings.HasPrefix(host, "[") || host != "" && host[0] >= '0' && host[0] <= '9' {
		if other, ok := otherAddress(host); ok {
			return []string{other}
		}
	}
	return slices.DeleteFunc(amazonNames(host), func(name string) bool { return name == host })
}

// UsualRegistry returns the name that policies usually have for a registry host: Amazon ECR's plain one,
// and an IPv4 address as such. It returns any other host as it is.
func UsualRegistry(host string) string {
	if names := amazonNames(host); len(names) > 0 {
		return names[0]
	}
	if other, ok := otherAddress(host); ok && strings.HasPrefix(host, "[") {
		return other
	}
	return host
}

// amazonNames returns all names of a registry of Amazon ECR, the plain one first; none for others.
func amazonNames(host string) []string {
	if public := []string{"public.ecr.aws", "ecr-public.aws.com"}; slices.Contains(public, host) {
		return public
	}
	type form struct{ service, domain string }
	partitions := [...][]form{
		{{".dkr.ecr.", ".amazonaws.com"}, {".dkr.ecr-fips.", ".amazonaws.com"}, {".dkr-ecr.", ".on.aws"}, {".dkr-ecr-fips.", ".on.aws"}},
		{{".dkr.ecr.", ".amazonaws.com.cn"}, {".dkr-ecr.", ".on.amazonwebservices.com.cn"}},
	}
	for _, forms := range partitions {
		for _, f := range forms {
			name, ok := strings.CutSuffix(host, f.domain)
			account, region, found := strings.Cut(name, f.service)
			if !ok || !found {
				continue
			}
			var names []string
			for _, one := range forms {
				names = append(names, account+one.service+region+one.domain)
			}
			return names
		}
	}
	return nil
}

// otherAddress converts 10.0.0.5:5000 to [::ffff:10.0.0.5]:5000, and back.
func otherAddress(host string) (string, bool) {
	if bracketed, ok := strings.CutPrefix(host, "["); ok {
		inside, port, _ := strings.Cut(bracketed, "]")
		address, err := netip.ParseAddr(inside)
		return address.Unmap().String() + port, err == nil && address.Is4In6()
	}
	name, port, hasPort := strings.Cut(host, ":")
	if strings.ContainsFunc(name, func(c rune) bool { return c != '.' && (c < '0' || c > '9') }) {
		return "", false
	}
	if hasPort {
		port = ":" + port
	}
	_, err := netip.ParseAddr(name)
	return "[::ffff:" + name + "]" + port, err == nil
}

// googleName returns the gcr.io name of a repository of Google Artifact Registry, or its pkg.dev name:
// gcr.io/project/app is app in the repository gcr.io of a project in us. A project of a domain has
// two components, as example.com/project.
func (r Repository) googleName() (other Repository, usual, ok bool) {
	if !strings.HasSuffix(r.registry, "gcr.io") && !strings.HasSuffix(r.registry, "-docker.pkg.dev") {
		return Repository{}, false, false
	}
	locations := map[string]string{"gcr.io": "us", "us.gcr.io": "us", "eu.gcr.io": "europe", "asia.gcr.io": "asia"}
	parts := strings.Split(r.path, "/")
	project := 1
	if strings.Contains(parts[0], ".") {
		project = 2
	}
	if location, is := locations[r.registry]; is && len(parts) > project {
		path := slices.Insert(parts, project, r.registry)
		return Repository{registry: location + "-docker.pkg.dev", path: strings.Join(path, "/")}, true, true
	}
	location, is := strings.CutSuffix(r.registry, "-docker.pkg.dev")
	if !is || len(parts) < project+2 || locations[parts[project]] != location {
		return Repository{}, false, false
	}
	usualHost := parts[project]
	return Repository{registry: usualHost, path: strings.Join(slices.Delete(parts, project, project+1), "/")}, false, true
}

// UsualName returns the repository under the name of its registry from UsualRegistry, and one of Google
// Artifact Registry under its gcr.io name.
func (r Repository) UsualName() Repository {
	if other, usual, ok := r.googleName(); ok && !usual {
		return other
	}
	return Repository{registry: UsualRegistry(r.registry), path: r.path}
}

// OtherNames returns the repository under the other names of its registry from otherRegistries, and under
// the other one that Google Artifact Registry has for it.
func (r Repository) OtherNames() []Repository {
	var others []Repository
	if other, _, ok := r.googleName(); ok {
		others = append(others, other)
	}
	for _, host := range otherRegistries(r.registry) {
		others = append(others, Repository{registry: host, path: r.path})
	}
	return others
}

// HubNames are the names of Docker Hub that references are written with, the normalised one first.
func HubNames() []string {
	return []string{dockerHub, "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "registry.ipv6.docker.com"}
}

// OtherSpellings returns the texts that a pattern may have for the repository, next to String: its
// OtherNames and, at Docker Hub, each name of the registry, with and without library/.
func (r Repository) OtherSpellings() []string {
	var texts []string
	for _, other := range r.OtherNames() {
		texts = append(texts, other.String())
	}
	if r.registry != dockerHub {
		return texts
	}
	official, isOfficial := strings.CutPrefix(r.path, "library/")
	for _, host := range HubNames()[1:] {
		texts = append(texts, host+"/"+r.path)
		if isOfficial {
			texts = append(texts, host+"/"+official)
		}
	}
	return texts
}

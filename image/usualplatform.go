package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Usual returns the index of the child that a linux/amd64 node runs, by the rules of containerd
// (core/images) and CRI-O (containers/image), and 0 for a single child or none. Where they may choose
// different children, the configurations must be equal: the error is that they are not, or that the
// configuration of a child without a platform is for another one. Config returns the configuration
// of a child; it is called for those of UsualCandidates alone.
func Usual(children []Descriptor, config func(child int) []byte) (int, error) {
	candidates := UsualCandidates(children)
	if len(children) < 2 {
		return 0, nil
	}
	first := candidates[0]
	for _, other := range candidates[1:] {
		if children[other].Digest != children[first].Digest && !bytes.Equal(config(other), config(first)) {
			return 0, fmt.Errorf("it lists %s and %s, and container runtimes differ in which one a linux/amd64 node runs: name one by digest",
				children[first].Digest, children[other].Digest)
		}
	}
	if children[first].Platform == nil {
		var named Platform
		if err := json.Unmarshal(config(first), &named); err != nil {
			return 0, fmt.Errorf("configuration: %w", err)
		}
		named = named.normal()
		if named.OS != "linux" || named.Architecture != "amd64" && named.Architecture != "386" {
			return 0, errors.New("it lists no image for linux/amd64, and a first one without a platform whose configuration is for " +
				named.String() + ": name one by digest")
		}
	}
	return first, nil
}

// UsualCandidates returns the indexes of the children of which a linux/amd64 node may run one: all
// for this platform, since CRI-O prefers some compressions and containerd the first. CRI-O knows no
// other spelling of the platform (x86_64), and prefers a child without a platform to it; containerd
// omits a child that requires features of the system, and prefers one for linux/386, then one without
// a platform. These are candidates, too, where no child is for this platform by both. Where there are
// none, it is the first for another variant, for Linux, or at all. For no children it is empty.
func UsualCandidates(children []Descriptor) []int {
	var byName, byFeatures bool
	for _, child := range children {
		if p := child.Platform; p.isFor("amd64") {
			byName = byName || p.OS == "linux" && p.Architecture == "amd64" && p.Variant == ""
			byFeatures = byFeatures || len(p.OSFeatures) == 0
		}
	}
	var all []int
	for i := range children {
		p := children[i].Platform
		if p.isFor("amd64") || p == nil && (!byName || !byFeatures) || p.isFor("386") && !byFeatures {
			all = append(all, i)
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, fits := range []func(Platform) bool{
		func(p Platform) bool { return p.OS == "linux" && p.Architecture == "amd64" },
		func(p Platform) bool { return p.OS == "linux" },
		func(Platform) bool { return true },
	} {
		for i := range children {
			if fits(children[i].Platform.normal()) {
				return []int{i}
			}
		}
	}
	return nil
}

// isFor reports whether containerd takes a platform for Linux on an architecture; false for nil.
func (p *Platform) isFor(architecture string) bool {
	if p == nil {
		return false
	}
	normal := p.normal()
	return normal.OS == "linux" && normal.Architecture == architecture && normal.Variant == ""
}

// normal returns the platform in containerd's normal form, without the version of the system, which
// counts for Windows alone, and without its features.
func (p Platform) normal() Platform {
	p = Platform{OS: strings.ToLower(p.OS), Architecture: strings.ToLower(p.Architecture), Variant: strings.ToLower(p.Variant)}
	if p.OS == "" {
		p.OS = "linux"
	}
	switch p.Architecture {
	case "x86_64", "x86-64":
		p.Architecture = "amd64"
	case "i386":
		p.Architecture = "386"
	}
	if p.Architecture == "amd64" && p.Variant == "v1" || p.Architecture == "386" {
		p.Variant = ""
	}
	return p
}

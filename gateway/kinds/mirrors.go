package kinds

import (
	"encoding/json"
	"strings"

	"github.com/quaymaster/quaymaster/cluster/document"
)

// MirrorResource is the resource of RegistryMirrors.
const MirrorResource = "registrymirrors"

// Mirrors are the custom resources for mirrors, with their supported versions.
func Mirrors(openShift bool) []document.Kind {
	kinds := []document.Kind{{Group: OwnGroup, Resource: MirrorResource, Versions: []string{"v1alpha1"}}}
	if openShift {
		kinds = append(kinds,
			document.Kind{Group: "config.openshift.io", Resource: "imagedigestmirrorsets", Versions: []string{"v1"}},
			document.Kind{Group: "config.openshift.io", Resource: "imagetagmirrorsets", Versions: []string{"v1"}})
	}
	return kinds
}

// IsMirror reports whether a document is a RegistryMirror.
func IsMirror(raw []byte) bool {
	group, kind := headOf(raw)
	return group == OwnGroup && kind == "RegistryMirror"
}

// headOf returns the group and the kind of a document; empty for an unreadable one.
func headOf(raw []byte) (group, kind string) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return "", ""
	}
	group, _, _ = strings.Cut(head.APIVersion, "/")
	return group, head.Kind
}

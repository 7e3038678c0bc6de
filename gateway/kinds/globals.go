package kinds

import (
	"github.com/quaymaster/quaymaster/cluster/document"
)

// GlobalContextResource is the resource of GlobalContextEntries.
const GlobalContextResource = "globalcontextentries"

// GlobalContext is the watched kind of GlobalContextEntries.
func GlobalContext() document.Kind {
	return document.Kind{Group: KyvernoGroup, Resource: GlobalContextResource, Versions: []string{"v2", "v2beta1", "v2alpha1"}}
}

// IsGlobalContext reports whether a document is a GlobalContextEntry.
func IsGlobalContext(key document.Key) bool {
	return key.Group == KyvernoGroup && key.Resource == GlobalContextResource
}

// IsGlobalContextEntry reports whether a document claims to be a GlobalContextEntry, of any version.
func IsGlobalContextEntry(raw []byte) bool {
	group, kind := headOf(raw)
	return group == KyvernoGroup && kind == "GlobalContextEntry"
}

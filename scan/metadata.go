package scan

import (
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

func metadata(object workload.Object) workload.Value { return object.Root().Member("metadata") }

func annotation(object workload.Object, name string) string {
	return metadata(object).Member("annotations").Member(name).Text()
}

// uidOf returns a copy of the UID, which does not retain the object's whole text.
func uidOf(object workload.Object) string {
	return strings.Clone(metadata(object).Member("uid").Text())
}

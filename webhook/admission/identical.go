package admission

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// member is a name, with its quotes, and its value, as raw JSON.
type member struct{ name, value []byte }

// identical reports whether two versions of an object differ only in metadata that the API server
// maintains. It may return false for equal objects, as when their members are in another order.
func identical(object, old []byte) bool {
	if bytes.Equal(object, old) {
		return true
	}
	return sameMembers(object, old, nil, func(a, b member) bool {
		kept := []string{`"managedFields"`, `"resourceVersion"`, `"generation"`}
		return string(a.name) == `"metadata"` && sameMembers(a.value, b.value, kept, nil)
	})
}

// onlyFinalizers reports whether two versions of an object in deletion differ only in finalizers and in
// metadata that the API server maintains. A Namespace also has finalizers in its spec. Like
// identical, it may return false for equal objects.
func onlyFinalizers(kind Kind, object, old []byte) bool {
	return sameMembers(object, old, nil, func(a, b member) bool {
		switch string(a.name) {
		case `"metadata"`:
			return sameMembers(a.value, b.value, []string{
				`"finalizers"`, `"deletionTimestamp"`, `"deletionGracePeriodSeconds"`, `"managedFields"`, `"resourceVersion"`, `"generation"`,
			}, nil)
		case `"spec"`:
			return kind == Kind{Kind: "Namespace"} && sameMembers(a.value, b.value, []string{`"finalizers"`}, nil)
		}
		return false
	})
}

// sameMembers compares the members of two objects, except those in leaveOut. If members differ,
// alike can accept the difference.
func sameMembers(a, b []byte, leaveOut []string, alike func(a, b member) bool) bool {
	of, readable := members(a, leaveOut)
	with, alsoReadable := members(b, leaveOut)
	return readable && alsoReadable && slices.EqualFunc(of, with, func(a, b member) bool {
		return bytes.Equal(a.name, b.name) && (bytes.Equal(a.value, b.value) || alike != nil && alike(a, b))
	})
}

// members returns the members of an object, and false if it could not be parsed.
func members(object []byte, leaveOut []string) ([]member, bool) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	next := func() []byte {
		value, err := decoder.ReadValue()
		if err != nil {
			return nil
		}
		end := decoder.InputOffset()
		return object[end-int64(len(value)) : end]
	}
	if decoder.PeekKind() != jsontext.KindBeginObject {
		return nil, false
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, false
	}
	var found []member
	for decoder.PeekKind() == jsontext.KindString {
		m := member{name: next(), value: next()}
		if m.value == nil {
			return nil, false
		}
		if !slices.Contains(leaveOut, string(m.name)) {
			found = append(found, m)
		}
	}
	_, err := decoder.ReadToken()
	return found, err == nil
}

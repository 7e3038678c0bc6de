package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// audit holds notes for the API server's audit log; empty ones are omitted.
type audit struct {
	answer, codes string
	// annotations are audit annotations of policies, by the policy's ID and the author's key.
	annotations map[string]string
}

// append encodes the notes. The API server prefixes each key with the webhook's name.
func (a audit) append(b []byte) []byte {
	b = append(b, `,"auditAnnotations":{"result":`...)
	b = quote(b, a.answer)
	if a.codes != "" {
		b = quote(append(b, `,"codes":`...), a.codes)
	}
	if len(a.annotations) == 0 {
		return append(b, '}')
	}
	annotations := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(a.annotations)) {
		if len(annotations) == maxAnnotations {
			break
		}
		annotations[annotationKey(key)] = a.annotations[key]
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		b = quote(append(b, ','), key)
		b = quote(append(b, ':'), clip(annotations[key], maxAnnotation))
	}
	return append(b, '}')
}

// annotationKey makes a valid key. The API server would drop an annotation with an invalid one.
func annotationKey(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '.'
	}, key)
	name = strings.Trim(name, "-_.")
	if len(validation.IsQualifiedName(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	short := hex.EncodeToString(sum[:4])
	most := validation.DNS1123LabelMaxLength - len(short) - 1
	return cmp.Or(strings.Trim(name[:min(len(name), most)], "-_."), "policy") + "-" + short
}

// clip truncates untrusted text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

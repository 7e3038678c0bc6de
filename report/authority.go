package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

// signersOf renders the keys, identities or trust that an authority accepts, in one line.
func signersOf(a *verify.Authority) string {
	switch {
	case a.Key != nil:
		if f := fingerprint(a.Key); f != "" {
			return f
		}
		if strings.Contains(a.Key.Ref, "-----BEGIN") {
			return "given in the policy"
		}
		return a.Key.Ref
	case a.Keyless != nil:
		names := make([]string, len(a.Keyless.Identities))
		for i, identity := range a.Keyless.Identities {
			names[i] = identity.String()
		}
		return strings.Join(names, " or ")
	case a.Certificate != nil && len(a.Certificate.Leaf) > 0:
		return "the certificate in the policy"
	case a.Certificate != nil:
		return "a certificate issued by the policy's chain"
	case a.Notation != nil && len(a.Notation.Identities) > 0:
		return strings.Join(a.Notation.Identities, " or ")
	case a.Notation != nil:
		return "any certificate from the trust stores"
	default:
		return "none"
	}
}

// terms lists the requirements of an authority on the same signature, beyond the defaults.
func terms(a *verify.Authority) []string {
	var out []string
	if a.Keyless != nil {
		for _, e := range a.Keyless.Extensions {
			name := e.Name
			if name == "" {
				name = e.OID
			}
			out = append(out, "extension "+name+" = "+e.Value.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Annotations)) {
		out = append(out, "annotation "+name+" = "+a.Annotations[name])
	}
	if a.Notation == nil {
		out = append(out, logTerm(a.Log))
	} else {
		out = append(out, levelTerm(a.Notation.Level))
	}
	if a.Timestamp.Required {
		out = append(out, "a timestamp of a trusted authority")
	}
	for _, bound := range []struct {
		word string
		at   time.Time
	}{{"not before", a.NotBefore}, {"not after", a.NotAfter}} {
		if !bound.at.IsZero() {
			out = append(out, "signed "+bound.word+" "+bound.at.UTC().Format(time.RFC3339))
		}
	}
	return out
}

func logTerm(l verify.Log) string {
	switch {
	case l.Ignore:
		return "no transparency log entry"
	case l.URL != "":
		return "an entry of the transparency log " + l.URL
	default:
		return "a transparency log entry"
	}
}

// levelTerm renders a notation level: its name, or its table.
func levelTerm(l verify.Level) string {
	switch l {
	case verify.Strict():
		return "notation level strict"
	case verify.Permissive():
		return "notation level permissive"
	case verify.Audit():
		return "notation level audit"
	}
	word := func(a verify.Action) string {
		if a == verify.Enforce {
			return "enforce"
		}
		return string(a)
	}
	return fmt.Sprintf("notation level custom: authenticity %s, authenticTimestamp %s, expiry %s, revocation %s",
		word(l.Authenticity), word(l.AuthenticTimestamp), word(l.Expiry), word(l.Revocation))
}

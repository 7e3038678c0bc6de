package verify

import (
	"fmt"
	"time"
)

// Admits decides whether a signature of the given trusted time lies within
// NotBefore and NotAfter. The zero time means that no trusted time is known,
// which meets no bound. It returns nil, or the reason without its origin.
func (a Authority) Admits(signedAt time.Time) *Rejection {
	if a.NotBefore.IsZero() && a.NotAfter.IsZero() {
		return nil
	}
	reject := &Rejection{Authority: a.Name, Expected: a.validity()}
	switch {
	case signedAt.IsZero():
		reject.Code = NoTimestamp
		reject.Err = fmt.Errorf("the authority is bounded in time, and the signature carries no trusted time of signing")
	case !a.NotBefore.IsZero() && signedAt.Before(a.NotBefore), !a.NotAfter.IsZero() && signedAt.After(a.NotAfter):
		reject.Code = OutsideValidity
		reject.Found = "signed at " + stamp(signedAt)
	default:
		return nil
	}
	return reject
}

// validity writes the bounds for messages.
func (a Authority) validity() string {
	text := "signed"
	if !a.NotBefore.IsZero() {
		text += " from " + stamp(a.NotBefore)
	}
	if !a.NotAfter.IsZero() {
		text += " until " + stamp(a.NotAfter)
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

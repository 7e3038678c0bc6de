package breakglass

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations beside the label are called like it, with these behind.
const (
	reasonSuffix = "-reason" // why; required
	untilSuffix  = "-until"  // until when, as RFC 3339; required
	bySuffix     = "-by"     // who opened it, as the API server knows them; may be missing
)

const (
	// MaxLength is for how long a namespace may be open after it was said to be.
	MaxLength = 24 * time.Hour
	// maxSkew is by how much the API server's clock may be ahead of ours: who opens a
	// namespace for the longest time is not to be closed for that.
	maxSkew = time.Minute
	// maxReason and maxName bound what is kept of texts, in bytes. The API server is told
	// to refuse longer reasons.
	maxReason, maxName = 500, 253
)

// Opening is an open namespace.
type Opening struct {
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	Reason    string `json:"reason,omitempty"`
	// By is who opened it, where they said so; the API server checks that it is true.
	// Manager is the program that did, as it calls itself.
	By      string `json:"by,omitempty"`
	Manager string `json:"manager,omitempty"`
	// Since is when it was opened, or changed last, by the API server's clock, and never
	// later than it was seen. Until is when it ends; zero: nobody said so in a way that can
	// be read.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// Why says why a namespace is not open any more, or ought not to be.
type Why string

// The causes. An Opening that has none is open as it should be.
const (
	// Expired: its time is over.
	Expired Why = "expired"
	// Incomplete: the reason or the end is missing, or the end is no time.
	Incomplete Why = "incomplete"
	// TooLong: it would be open for longer than MaxLength.
	TooLong Why = "too-long"
	// Removed: somebody else took the label off, or the namespace is gone.
	Removed Why = "removed"
)

// Judge reads the metadata of a namespace with the label, and says why it must be closed
// now; empty: it need not be.
func Judge(label string, of *metav1.ObjectMeta, now time.Time) (Opening, Why) {
	o := Opening{
		Namespace: of.Name, UID: string(of.UID), Since: now.UTC().Truncate(time.Second),
		Reason: cut(strings.TrimSpace(of.Annotations[label+reasonSuffix]), maxReason), By: cut(of.Annotations[label+bySuffix], maxName),
	}
	longest := o.Since.Add(MaxLength)
	if entry := wrote(label, of.ManagedFields); entry != nil {
		o.Manager = cut(entry.Manager, maxName)
		at := entry.Time.UTC()
		if at.Before(now) { // whoever may write the entries may write a later one
			o.Since = at
		}
		if !at.After(now.Add(maxSkew)) {
			longest = at.Add(MaxLength)
		}
	}
	until, err := time.Parse(time.RFC3339, of.Annotations[label+untilSuffix])
	if err == nil {
		o.Until = until.UTC()
	}
	switch {
	case err != nil || o.Reason == "":
		return o, Incomplete
	case o.Until.After(longest):
		return o, TooLong
	case !o.Until.After(now):
		return o, Expired
	}
	return o, ""
}

// wrote is the newest entry of who wrote the label or its end.
func wrote(label string, entries []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	var newest *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if e.Time == nil || e.FieldsV1 == nil {
			continue
		}
		fields := e.FieldsV1.GetRawString()
		if !strings.Contains(fields, `"f:`+label+`"`) && !strings.Contains(fields, `"f:`+label+untilSuffix+`"`) {
			continue
		}
		if newest == nil || newest.Time.Before(e.Time) {
			newest = e
		}
	}
	return newest
}

// String says what is known of it, for people.
func (o Opening) String() string {
	by := o.By
	if by == "" && o.Manager != "" {
		by = "somebody who did not say, with " + o.Manager
	}
	if by == "" {
		by = "somebody who did not say"
	}
	until := "no end that can be read"
	if !o.Until.IsZero() {
		until = "until " + o.Until.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, by %s: %q", until, by, o.Reason)
}

// same reports whether two openings are one and the same.
func (o Opening) same(as Opening) bool {
	return o.UID == as.UID && o.Reason == as.Reason && o.By == as.By && o.Until.Equal(as.Until)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

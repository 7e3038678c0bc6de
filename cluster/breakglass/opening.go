package breakglass

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The suffixes that form the annotations' names from the label's.
const (
	reasonSuffix = "-reason" // the reason; required
	untilSuffix  = "-until"  // the expiry, as RFC 3339; required
	bySuffix     = "-by"     // the user, as authenticated by the API server; optional
)

const (
	// MaxLength bounds the time between the opening of a namespace and its expiry.
	MaxLength = 24 * time.Hour
	// maxSkew is the tolerated clock skew to the API server: a namespace with the maximum length
	// must not be closed because of it.
	maxSkew = time.Minute
	// maxReason and maxName bound the stored texts, in bytes. The ValidatingAdmissionPolicy
	// rejects longer reasons.
	maxReason, maxName = 500, 253
)

// Opening is an open namespace.
type Opening struct {
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	Reason    string `json:"reason,omitempty"`
	// By is the user, where stated; the API server verifies it. Manager is the field manager of
	// the change.
	By      string `json:"by,omitempty"`
	Manager string `json:"manager,omitempty"`
	// Since is the time of the opening or of the last change, by the API server's clock, and
	// never later than its observation. Until is the expiry; zero if it is missing or invalid.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// Why is the reason why a namespace was closed, or must be.
type Why string

// The reasons. An Opening without one is valid.
const (
	// Expired: the expiry has passed.
	Expired Why = "expired"
	// Incomplete: the reason or the expiry is missing, or the expiry is no valid time.
	Incomplete Why = "incomplete"
	// TooLong: the expiry is later than MaxLength allows.
	TooLong Why = "too-long"
	// Removed: another client removed the label, or the namespace was deleted.
	Removed Why = "removed"
)

// Judge parses the metadata of a namespace with the label, and returns the reason why it must be
// closed now; empty if it is valid.
func Judge(label string, of *metav1.ObjectMeta, now time.Time) (Opening, Why) {
	o := Opening{
		Namespace: of.Name, UID: string(of.UID), Since: now.UTC().Truncate(time.Second),
		Reason: cut(strings.TrimSpace(of.Annotations[label+reasonSuffix]), maxReason), By: cut(of.Annotations[label+bySuffix], maxName),
	}
	longest := o.Since.Add(MaxLength)
	if entry := wrote(label, of.ManagedFields); entry != nil {
		o.Manager = cut(entry.Manager, maxName)
		at := entry.Time.UTC()
		if at.Before(now) { // a client that can write these entries could write a later time
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

// wrote returns the newest managedFields entry with the label or its expiry.
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

// String describes the opening for users.
func (o Opening) String() string {
	by := o.By
	if by == "" && o.Manager != "" {
		by = "an unnamed user, with " + o.Manager
	}
	if by == "" {
		by = "an unnamed user"
	}
	until := "no end that can be read"
	if !o.Until.IsZero() {
		until = "until " + o.Until.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, by %s: %q", until, by, o.Reason)
}

// same reports whether two openings are equal.
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

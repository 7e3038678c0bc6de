package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// isBare reports whether the record is of an image without an object, which gate.ForImage wraps
// in a Pod of this shape; the output must not mention that Pod.
func (r Record) isBare() bool {
	return r.Object.Source == "" && r.Object.Kind == "Pod" && r.Object.Name == "image" &&
		len(r.Images) <= 1 && (len(r.Images) == 0 || r.Images[0].Container == "image")
}

// isDocument reports whether it is a document from a file that is not a Kubernetes object.
func (o Object) isDocument() bool {
	return o.APIVersion == "" && o.Kind == "" && o.Source != ""
}

// title returns kind, namespace/name and source.
func (o Object) title() string {
	if o.isDocument() {
		return "document (" + clean(o.Source) + ")"
	}
	name := clean(o.Name)
	if name == "" {
		name = "(no name yet)"
	}
	if o.Namespace != "" {
		name = clean(o.Namespace) + "/" + name
	}
	title := strings.TrimSpace(clean(o.Kind) + " " + name)
	switch {
	case o.Source != "" && o.Template != "":
		title += " (" + clean(o.Source) + ", from " + clean(o.Template) + ")"
	case o.Source != "":
		title += " (" + clean(o.Source) + ")"
	}
	return title
}

// place is the container of an image, as in "db (init)".
func (v Image) place() string {
	if v.Role == "" || v.Role == "container" {
		return clean(v.Container)
	}
	return clean(v.Container) + " (" + clean(v.Role) + ")"
}

// String returns one line for a proof, safe for a terminal.
func (p Proof) String() string {
	parts := []string{p.Role + " in " + p.Format + " format"}
	if p.PredicateType != "" {
		parts[0] += " of type " + clean(p.PredicateType)
	}
	parts = append(parts, "by "+clean(p.Signer.String()), "at "+clean(p.Found.String()))
	for _, entry := range p.LogEntries {
		parts = append(parts, "log "+logEntry(entry.LogID, entry.Index, entry.Time))
	}
	if !p.SignedAt.IsZero() {
		parts = append(parts, "signed "+p.signed())
	}
	for _, note := range p.Notes {
		parts = append(parts, "noted: "+clean(note))
	}
	return strings.Join(parts, ", ")
}

// signed is the time of signing and its source.
func (p Proof) signed() string {
	text := p.SignedAt.Format(time.RFC3339)
	if p.TimeSource != "" {
		text += " (by " + p.TimeSource.String() + ")"
	}
	return text
}

func logEntry(id string, index int64, at time.Time) string {
	text := "entry " + strconv.FormatInt(index, 10)
	if id != "" {
		text += " of log " + short(clean(id))
	}
	if !at.IsZero() {
		text += " (" + at.UTC().Format(time.RFC3339) + ")"
	}
	return text
}

// short returns the first digits of a hash, for display.
func short(hash string) string {
	const digits = 16
	if len(hash) <= digits {
		return hash
	}
	return hash[:digits]
}

// String returns one line for a cost.
func (c Cost) String() string {
	text := count(int(c.Requests), "request") + ", " + count(int(c.CountedPulls), "counted pull")
	if c.RateLimitRemaining != nil {
		text += " (" + strconv.FormatInt(*c.RateLimitRemaining, 10) + " left)"
	}
	return text + ", " + count(int(c.Bytes), "byte")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func duration(milliseconds float64) string {
	if milliseconds >= 10 {
		return fmt.Sprintf("%.0f ms", milliseconds)
	}
	return fmt.Sprintf("%.2f ms", milliseconds)
}

// join joins an entry and a path, which may already contain the entry.
func join(entry, path string) string {
	switch {
	case entry == "" || path == entry || strings.HasPrefix(path, entry+".") || strings.HasPrefix(path, entry+"["):
		return path
	case path == "":
		return entry
	default:
		return entry + "." + path
	}
}

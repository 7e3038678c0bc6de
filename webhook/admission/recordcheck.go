package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
)

// Copies resolves the copies of images in mirrors. *mirror.Set implements it.
type Copies interface {
	// IsCopy reports whether copied is in the repository of a mirror for written. It does not
	// compare tags and digests.
	IsCopy(copied, written image.Ref) bool
}

// became reports whether an image can result from the written one: with a digest added, or as a
// mirror's copy by digest. copies may be nil.
func became(copies Copies, now, written string) bool {
	if isPinOf(now, written) {
		return true
	}
	if copies == nil || now == "" || written == "" {
		return false
	}
	copied, err := image.Parse(now)
	if err != nil || copied.Digest().IsZero() {
		return false
	}
	from, err := image.Parse(written)
	if err != nil || from.Tag() != copied.Tag() || !from.Digest().IsZero() && from.Digest() != copied.Digest() {
		return false
	}
	return copies.IsCopy(copied, from)
}

// isPinOf reports whether pinned is the text and a digest.
func isPinOf(pinned, text string) bool {
	digest, ok := strings.CutPrefix(pinned, text+"@")
	if !ok || text == "" {
		return false
	}
	_, err := image.ParseDigest(digest)
	return err == nil
}

// checkRecord returns an error if an update changes the annotation in a way that is not allowed. The
// entry of an unchanged image must stay the same, and a new entry must agree with its image. Stale
// entries, as of a changed image, are allowed.
func checkRecord(copies Copies, object, old workload.Object) error {
	after, isThere := annotation(object)
	before, wasThere := annotation(old)
	if isThere == wasThere && reflect.DeepEqual(after, before) {
		return nil
	}
	uses, err := workload.Extract(object)
	if err != nil {
		return nil //nolint:nilerr // the gate reports the error
	}
	oldUses, _ := workload.Extract(old) // an unreadable object vouches for no entry
	newEntries, oldEntries := recorded(object), recorded(old)
	if isThere && newEntries == nil {
		return fmt.Errorf("%s: must be a JSON object of container names and images", WrittenAnnotation)
	}
	now, running := byContainer(uses), byContainer(oldUses)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		entry, known := oldEntries[name]
		text, has := newEntries[name]
		if known && isUnchanged(running, now[name]) && (!has || text != entry) {
			return fmt.Errorf("%s: the entry of %s was %s, and the image is the same as before", WrittenAnnotation, quoted(name), quoted(entry))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(newEntries)) {
		entry, known := oldEntries[name]
		if known && entry == newEntries[name] || became(copies, now[name].Text, newEntries[name]) {
			continue
		}
		return fmt.Errorf("%s: the entry %s of %s does not agree with the image", WrittenAnnotation, quoted(newEntries[name]), quoted(name))
	}
	return nil
}

func quoted(s string) string { return strconv.Quote(review.Plain(s, review.MaxField)) }

// tampered denies an update that changes the record.
func (q *pending) tampered(err error) response {
	q.cause, q.err = Malformed, err
	return denied(q.title() + ": " + review.Denied + "\n  why: " + err.Error() +
		"\n  next: do not change the annotation; it is the gateway's record of the original images")
}

package admission

import "time"

// Limits on requests and responses.
const (
	// MaxBody bounds a review, in bytes. The API server accepts objects of up to 3 MiB; a review
	// holds the new and the old object and their metadata. An object with very many characters that
	// JSON escapes can exceed the limit, and is denied.
	MaxBody = 7 << 20
	// MaxTimeout is the longest timeout of a webhook.
	MaxTimeout = 30 * time.Second
	// defaultTimeout is the API server's default.
	defaultTimeout = 10 * time.Second
	// maxMargin is the most time that is reserved for the response.
	maxMargin = time.Second

	// maxMessage bounds a denial, in bytes, to fit a terminal. Whole lines are omitted and counted.
	maxMessage = 4 << 10
	// maxWarnings and maxWarning are limits of the API server, which truncates longer warnings.
	maxWarnings = 10
	maxWarning  = 256
	// maxAnnotations and maxAnnotation bound the audit annotations of policies, the latter in
	// bytes. The number is the API server's limit for one of its own policies, the size a part of
	// its limit for each.
	maxAnnotations = 20
	maxAnnotation  = 4 << 10
	// maxWritten bounds the annotation when it is read, in bytes. All annotations of an object take
	// at most 256 KiB.
	maxWritten = 256 << 10
	// maxParsed bounds the memory of one parsed request, in bytes, as estimated by costOf. It is
	// about five times that of the largest real objects. A few megabytes of empty objects would
	// take hundreds.
	maxParsed = 24 << 20
	// maxHead bounds the part of an incomplete body that is searched for the request's UID, in
	// bytes. An API server writes the UID near the front.
	maxHead = 16 << 10
	// keptBuffer is the largest buffer that is reused, in bytes.
	keptBuffer = 256 << 10
)

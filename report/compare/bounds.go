package compare

// The bounds on what is read and kept. All of it is text that strangers chose.
const (
	// MaxVerdicts bounds the verdicts that are kept of each side, at some 600 bytes each.
	MaxVerdicts = 400_000
	// MaxDifferences bounds the rows of a comparison; of more than that the least
	// dangerous are counted alone.
	MaxDifferences = 20_000
	// maxObject bounds an object that is read, in bytes: what etcd takes, twice.
	maxObject = 3 << 20
	// maxLine bounds a line of an audit log, in bytes: an object of a request and one of
	// the response.
	maxLine = 4 << 20
	// maxMetric bounds a line of a scrape, and maxMetrics how many are read.
	maxMetric, maxMetrics = 16 << 10, 2_000_000
	// maxText bounds a name, and maxMessage a message that is kept, in bytes.
	maxText, maxMessage = 512, 1 << 10
	// maxDenial bounds what is read of a denial, in bytes; Kyverno's name each rule.
	maxDenial = 64 << 10
	// maxClaims bounds the policies and rules of one denial.
	maxClaims = 500
	// maxPlaces bounds the objects whose controller is known, and the policies whose
	// change is.
	maxPlaces = 400_000
	// maxSiblings bounds the verdicts on the objects of one controller among which one is
	// looked for that nothing was said of itself: they are of one template.
	maxSiblings = 200
	// maxTokens bounds the words of a message that are looked at for an image's name.
	maxTokens = 200
)

// cut keeps at most so many bytes of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most] + "..."
}

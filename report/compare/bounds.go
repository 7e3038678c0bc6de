package compare

// Bounds on input and retained data. All of the input is untrusted text.
const (
	// MaxVerdicts bounds the retained verdicts of each side, at about 600 bytes each.
	MaxVerdicts = 400_000
	// MaxDifferences bounds the rows of a comparison. Beyond it, the least dangerous rows are
	// only counted.
	MaxDifferences = 20_000
	// maxObject bounds an input object, in bytes: twice the limit of etcd.
	maxObject = 3 << 20
	// maxLine bounds a line of an audit log, in bytes: one object of the request and one of the
	// response.
	maxLine = 4 << 20
	// maxMetric bounds a line of a scrape, and maxMetrics the number of lines.
	maxMetric, maxMetrics = 16 << 10, 2_000_000
	// maxText bounds a name, and maxMessage a retained message, in bytes.
	maxText, maxMessage = 512, 1 << 10
	// maxDenial bounds the part of a denial that is parsed, in bytes. Kyverno's denials name each
	// rule.
	maxDenial = 64 << 10
	// maxClaims bounds the policies and rules of one denial.
	maxClaims = 500
	// maxPlaces bounds the objects with a recorded controller and the policies with a recorded
	// change.
	maxPlaces = 400_000
	// maxSiblings bounds the verdicts on other objects of one controller that are searched for an
	// object without a verdict of its own: all of them come from one template.
	maxSiblings = 200
	// maxTokens bounds the words of a message that are searched for an image name.
	maxTokens = 200
)

// cut truncates a text to so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most] + "..."
}

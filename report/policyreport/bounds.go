package policyreport

// The bounds on reports. Their content is untrusted text, and etcd limits an object to 1.5 MiB.
const (
	// DefaultResults is the default number of results in a part, as in other report writers.
	// Policy Reporter reads a part at once.
	DefaultResults = 1000
	// DefaultBytes is the default size of a part: a third of etcd's limit, because managedFields
	// come on top, and watchers receive the whole part at each change.
	DefaultBytes = 512 << 10
	// MinBytes is the least bound of a part: one result of maximum size with every byte escaped.
	MinBytes = 64 << 10
	// MaxBytes is the greatest bound of a part: etcd's limit less the managedFields.
	MaxBytes = 1 << 20
	// MaxParts bounds the parts of one report: some hundred thousand results.
	MaxParts = 500

	// maxRead bounds one part when it is read, in bytes: twice etcd's limit.
	maxRead = 3 << 20
	// maxMessage bounds a message, in bytes. The longest of the Pod Security policies
	// has 600.
	maxMessage = 1 << 10
	// maxText bounds every other text of a result, in bytes. A name has 253, a reference with a
	// digest some 300.
	maxText = 512
	// maxProperties bounds the properties that a policy's author adds, maxProperty their values,
	// and maxPropertyName their names, in bytes: consumers use them as labels.
	maxProperties   = 8
	maxProperty     = 256
	maxPropertyName = 63
	// maxName bounds the name of a report, in bytes, and leaves space for a number.
	maxName = 240
)

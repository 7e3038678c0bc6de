package policyreport

// The bounds on reports. What they hold is text that strangers chose, and etcd takes
// 1.5 MiB an object.
const (
	// DefaultResults is how many results a part holds unless set, as other report
	// makers do; Policy Reporter reads a part at once.
	DefaultResults = 1000
	// DefaultBytes bounds a part unless set: a third of what etcd takes, because
	// managedFields come on top, and a watcher is sent all of it at each change.
	DefaultBytes = 512 << 10
	// MinBytes is the least that a part may be bounded to: one result at its bounds,
	// every byte of it escaped.
	MinBytes = 64 << 10
	// MaxBytes is the most: what etcd takes, less the managedFields.
	MaxBytes = 1 << 20
	// MaxParts bounds the parts of one report: some hundred thousand results.
	MaxParts = 500

	// maxRead bounds one part that is read, in bytes: twice what etcd takes.
	maxRead = 3 << 20
	// maxMessage bounds a message, in bytes. The longest of the Pod Security policies
	// has 600.
	maxMessage = 1 << 10
	// maxText bounds every other text of a result, in bytes; a name has 253, a
	// reference with a digest some 300.
	maxText = 512
	// maxProperties bounds the properties that a policy's author adds, maxProperty
	// their values, and maxPropertyName their names, in bytes: readers make labels of
	// them.
	maxProperties   = 8
	maxProperty     = 256
	maxPropertyName = 63
	// maxName bounds the name of a report, in bytes, with room for a number behind it.
	maxName = 240
)

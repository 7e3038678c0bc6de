// Package verdict answers: what was decided about an image or an object, and what did a
// rule come to, in one word?
//
// It reads report's Record, version 1, as docs/record.md describes it, and remembers
// nothing.
package verdict

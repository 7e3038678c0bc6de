// Package verdict derives one verdict for an image or an object, and one result for a rule.
//
// It reads report's Record, version 1 (docs/record.md), and is stateless.
package verdict

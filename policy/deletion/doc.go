// Package deletion decides which existing objects policies delete, with its safety rules: which objects are
// protected whatever a policy selects, and how many objects one run may delete. The controller and
// the previews of the command line share them. They are the gateway's own: Kyverno
// 1.19 protects only its own objects, and has no limit.
package deletion

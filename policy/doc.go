// Package policy decides whether an image may run, given its verified claims.
//
// It contains only the decision logic. Dialects (policy/dialect/kyverno and its siblings) compile the
// users' documents into Policy and Rule. The gate calls a Set twice. First, Plan returns the
// checks that apply to a subject and the evidence that they require. Then Decide evaluates those
// checks against the verified evidence. The package opens no connection and reads no clock except
// the one in its arguments. It never turns an error into an admission or a denial: the gate does
// that, according to the policy's failure setting.
package policy

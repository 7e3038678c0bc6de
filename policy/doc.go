// Package policy defines policies, checks and decisions about images and objects.
//
// It contains only the decision logic. Dialects (policy/dialect/kyverno and its siblings) compile the
// users' documents into Policy and Rule. Package set finds the rules that apply to a subject and
// returns their checks with the evidence that they require; package decide evaluates the checks
// against the verified evidence. The package opens no connection and reads no clock except the one
// in its arguments. It never turns an error into an admission or a denial: the gate does that,
// according to the policy's failure setting.
package policy

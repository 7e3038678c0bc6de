// Package policy answers: given what was proved, may this image run?
//
// It is pure judgement. Dialects (policy/kyverno and its siblings) compile what
// users wrote into Policy and Rule; a Set of them is asked twice by the gate:
// first Plan, "which checks apply to this subject, and what would have to be
// proved?", then Decide, "here is what was proved; well?". It opens no
// connection, reads no clock but the one it is given, and never turns
// could-not-look into a yes or a no: that is the gate's, as the policy's
// failure setting says.
package policy

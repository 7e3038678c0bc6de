// Package converttest answers, for tests of the formats: is a policy of another system
// carried as its golden file says, is it refused with one thing wrong, and of which
// images do the policies speak that were written?
//
// Policies are handed to convert.Convert as a user would hand them in; the expressions
// of matchImageReferences (policies.kyverno.io/v1) are evaluated as the dialect does.
package converttest

// Package given answers: what is said of a request and of a cluster, where there is
// neither?
//
// It reads Kyverno's files for its command line (cli.kyverno.io/v1alpha1 Values and
// UserInfo, Kyverno 1.19), and puts what they say where the engine finds it: values of
// the request into the request, values of context entries into the policy, as
// variables in place of the look-ups. So a policy is compiled and asked as at
// admission, and knows of nothing.
package given

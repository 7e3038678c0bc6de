// Package given replaces requests and clusters by values from files.
//
// It reads the files of Kyverno's command line (cli.kyverno.io/v1alpha1 Values and UserInfo,
// Kyverno 1.19). Values of the request are set in the request. Values of context entries are set
// in the policy, as variables in place of the look-ups. The engine therefore compiles and
// evaluates a policy as at admission.
package given

// Package suites converts test suites along with their policies.
//
// It reads suites of "kyverno test" (cli.kyverno.io/v1alpha1, Kyverno 1.19) and writes them for the policies
// that package cel made of theirs: rows name the new policies, and files are named from the new place. Comments and
// unknown fields remain. What has no form, such as a value for a look-up, is refused with its path.
package suites

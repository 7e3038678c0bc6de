// Package suite tests policies against expected results.
//
// A suite is a file in Kyverno's format (cli.kyverno.io/v1alpha1 Test, Kyverno 1.19, "kyverno
// test"): policies, objects, values and cluster objects, and the expected result of each rule
// for each object. The older form without apiVersion is read too. As an extension to Kyverno's
// fields a suite may describe images, which are built and signed for the run, so that policies
// about images are tested without a registry.
//
// Package gate evaluates the objects, as at admission; the meaning of an expectation is
// Kyverno's. The only connections are those to the run's own registry on loopback.
package suite

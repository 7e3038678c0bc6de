// Package suite answers: do policies say of objects what their author expects?
//
// A suite is a file in Kyverno's format (cli.kyverno.io/v1alpha1 Test, Kyverno
// 1.19, "kyverno test"): policies, objects, what is known beside them, and the
// result that each rule is to have for each object. The older form without
// apiVersion is read too. Beside Kyverno's fields a suite may describe images, which
// are built and signed for the run, so that policies about images are tested without
// a registry.
//
// Objects are judged by package gate, as at admission; what is Kyverno's is only what
// an expectation means. No connection is opened but to a registry of the run's own on
// loopback.
package suite

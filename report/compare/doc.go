// Package compare reports where Quaymaster and another policy engine differ on the same cluster,
// and ranks the differences by danger.
//
// A Collector accepts the records of both engines in any order and compares them:
//
//	c := compare.New()
//	c.Object(text)          // a report, an event, a policy, an object's metadata (JSON)
//	c.Decision(line)        // a line of our decision log
//	c.Audit(reader)         // an audit log of the API server
//	c.Metrics(reader)       // a scrape
//	comparison := c.Compare(time.Now())
//
// It reads these formats of other engines: PolicyReport v1alpha2 of wgpolicyk8s.io and Report
// v1alpha1 of openreports.io as written by Kyverno 1.13 to 1.19; Events v1 and events.k8s.io/v1,
// of Kyverno on policies and resources, and of controllers with denied pods; the denials of
// Kyverno, Sigstore's policy-controller and Connaisseur as the API server passes them on in such
// events and in audit.k8s.io/v1; the text format of Prometheus, version 0.0.4. All of it is
// untrusted text: it is bounded, unreadable input is counted and left out, and it affects only
// the resulting table.
//
// A verdict is the result of one rule for one image of one object, or for the object. It is
// admit, deny, or an error (the image could not be verified). Unknown values are left out, not
// guessed.
package compare

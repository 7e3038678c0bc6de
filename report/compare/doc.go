// Package compare answers: where do we and another engine differ about the same cluster,
// and which of the differences is dangerous?
//
// A Collector is fed with what both left behind, in any order, and compares it:
//
//	c := compare.New()
//	c.Object(text)          // a report, an event, a policy, an object's metadata (JSON)
//	c.Decision(line)        // a line of our decision log
//	c.Audit(reader)         // an audit log of the API server
//	c.Metrics(reader)       // a scrape
//	comparison := c.Compare(time.Now())
//
// What is read of others: PolicyReport v1alpha2 of wgpolicyk8s.io and Report v1alpha1 of
// openreports.io as Kyverno 1.13 to 1.19 writes them; Events v1 and events.k8s.io/v1, of
// Kyverno on policies and resources, and of controllers whose pods were denied; the
// denials of Kyverno, Sigstore's policy-controller and Connaisseur as the API server
// passes them on in such events and in audit.k8s.io/v1; the text format of Prometheus,
// version 0.0.4. All of that is text that strangers may have written: it is bounded, what
// makes no sense is counted and left out, and nothing follows from it but a table.
//
// A verdict is what one rule says of one image of one object, or of the object. It is one
// of three: admit, deny, and could not look. What cannot be known is not guessed.
package compare

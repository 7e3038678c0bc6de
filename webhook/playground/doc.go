// Package playground serves a page that evaluates policies against objects, both written in it.
//
// docs/playground.md describes the page, its API below api/v1/ and its bounds. Nothing is stored, and nothing
// is read from elsewhere: the Evaluator has the texts of a request alone. The state of a page is in the fragment
// of its address (RFC 3986, section 3.5), which browsers do not send: the server has it once the user of the page
// evaluates it.
//
// A request for an evaluation is a POST of JSON from the page's own origin (Fetch Metadata and Origin, as
// net/http.CrossOriginProtection checks them). On loopback it must name a loopback host, which prevents DNS
// rebinding. Behind the dashboard, the dashboard authenticates.
package playground

// Package reporting keeps and publishes the decisions of the gateway: it composes the signed
// decision log with its sinks, policy reports, the dashboard, and the closing of namespaces that
// break glass has opened.
package reporting

// Package notation reads trust policies of the Notary Project.
//
// It follows the Notary Project's trust store and trust policy specification, version 1.0.
// Ratify embeds such a document, and so uses TrustPolicies, too.
package notation

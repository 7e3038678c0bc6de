// Package notation answers: what does a trust policy of notation ask of images?
//
// It follows the Notary Project's trust store and trust policy specification,
// version 1.0. Ratify holds such a document, and so uses TrustPolicies, too.
package notation

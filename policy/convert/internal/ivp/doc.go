// Package ivp models and writes ImageValidatingPolicies.
//
// It follows policies.kyverno.io/v1. Content of a source becomes fields of a Policy; Write
// adds common defaults (which requests, which failure setting), and keeps text of the
// source inside comments and names.
package ivp

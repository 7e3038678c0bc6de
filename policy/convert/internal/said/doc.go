// Package said answers: what does a policy say, in the words of an
// ImageValidatingPolicy, and how is that written?
//
// It follows policies.kyverno.io/v1. What a source says is put into a Policy and
// nothing else; habits that all have (which requests, which failure setting) are
// filled in by Write, and what a source says stays inside its comments and names.
package said

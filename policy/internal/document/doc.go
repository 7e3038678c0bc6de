// Package document answers: is a part of a Kyverno document what its author
// meant to write?
//
// It decodes parts strictly, with their path and the name that a misspelt field
// was probably meant to have, and finds what is written and says nothing. Package
// field does so for whole documents.
package document

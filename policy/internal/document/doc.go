// Package document finds mistakes in the parts of Kyverno documents.
//
// It decodes parts strictly, and reports the path of a misspelt field with the probable name. It
// also finds fields that are present without effect. Package field does so for whole documents.
package document

// Package function implements the functions that Kyverno 1.19 adds to JMESPath, by the kind of
// their values: texts, numbers and quantities, times, lists and objects, encodings.
//
// Each function bounds the text that it builds; package jmespath charges for its cost.
package function

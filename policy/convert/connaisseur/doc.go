// Package connaisseur reads the application values of Connaisseur 3.
//
// It follows Connaisseur 3's documentation of validators, image policy and features. The
// most specific matching rule alone decides about an image; so each policy excludes the
// images of more specific patterns.
package connaisseur

// Package connaisseur answers: what do the application values of Connaisseur 3 ask of
// images?
//
// It follows Connaisseur 3's documentation of validators, image policy and features.
// Of its rules the most specific one alone judges an
// image; so each policy leaves out what a more specific pattern takes.
package connaisseur

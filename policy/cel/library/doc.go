// Package library answers: what do the functions mean that Kyverno adds to CEL?
//
// They are those of Kyverno's SDK of 2026 (its libraries gzip, hash, image, json,
// math, random, time, transform, user and yaml, at version 1.18) that compute and
// ask nobody, with its names, overloads and types. What differs is on the safe
// side: texts are bounded, YAML whose aliases would grow is refused, and an image
// reference is what container runtimes take for one.
package library

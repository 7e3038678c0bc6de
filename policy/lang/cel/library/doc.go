// Package library implements the functions that Kyverno adds to CEL.
//
// They are those of Kyverno's SDK of 2026 (its libraries gzip, hash, image, json, math, random,
// time, transform, user, x509 and yaml, at version 1.18) that compute without external data, with its
// names, overloads and types. The differences are restrictions: texts are bounded, YAML with
// growing aliases is refused, and image references follow the syntax of container runtimes.
package library

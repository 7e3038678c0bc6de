// Package match decides whether a Kyverno rule matches an object.
//
// It compiles match and exclude blocks of kyverno.io/v1 (Kyverno 1.19, "Selecting Resources"):
// kinds, names, namespaces, labels, annotations, operations and users, with wildcards. A block
// also returns beforehand the kinds that it may match, and the conditions that are unknown for a
// bare subject, which has only images and their namespace.
package match

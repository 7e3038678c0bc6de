// Package match answers: does a rule of Kyverno's speak of an object?
//
// It compiles match and exclude blocks of kyverno.io/v1 (Kyverno 1.19, "Selecting
// Resources"): kinds, names, namespaces, labels, annotations, operations and users,
// with wildcards. A block also says beforehand which kinds it may speak of, and
// what it cannot know of a bare subject, of which only images and their namespace
// are known.
package match

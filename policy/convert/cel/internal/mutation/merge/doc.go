// Package merge writes a strategic merge of Kyverno's mutation rules (`patchStrategicMerge`, kyverno.io/v1,
// Kyverno 1.19) as mutations of a MutatingPolicy.
//
// It becomes an ApplyConfiguration, which is merged as by server-side apply: new elements of a list come
// last and the others stay in their places, where a strategic merge puts those of the patch first. A JSONPatch
// after it, or before it, puts them in that order. Fields that server-side apply replaces as a whole are JSON
// patches. What cannot be said exactly is a source.Unsupported error with the path.
package merge

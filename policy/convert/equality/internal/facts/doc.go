// Package facts finds the paths of objects that policies read, and the values that they compare, in all dialects of
// policies: patterns, conditions, JMESPath and CEL (Kyverno 1.19).
package facts

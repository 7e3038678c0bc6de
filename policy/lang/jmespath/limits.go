package jmespath

import "github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"

// The limits of foreign input. Kyverno caps the whole context of a rule at 2 MB, so no honest
// policy reaches these.
const (
	// maxExpression bounds an expression's text. The longest in the public
	// policy library has under 4,000 characters.
	maxExpression = 64 << 10
	// maxNesting bounds brackets in brackets, for the parser is recursive.
	maxNesting = 256
	// maxPath bounds a path that a hole after a dot holds.
	maxPath = 512
	// maxResult bounds a result: bytes of its strings plus valueCost for each
	// value in it.
	maxResult = 8 << 20
	valueCost = function.ValueCost
	// maxWork bounds the values that one evaluation creates and reads, in the units of maxResult:
	// a million values. The largest object that Kubernetes accepts has some ten thousand, and an
	// evaluation that spends all of it takes tens of milliseconds and MiB.
	maxWork = 16 << 20
	// mapCost is what a small object takes in memory, memberCost each member of a
	// large one or a string in a list, and parsedCost each byte of a document: `[{},{}`
	// has three for an object.
	mapCost, memberCost, parsedCost = 384, 48, 6
	// comparedCost is the cost of comparing lists or objects, as a multiple of a traversal.
	comparedCost = 4
	// maxToll is the binary logarithm of the greatest weight of an item: no tree of
	// maxExpression has more.
	maxToll = 20
	// trimSpeed is how many characters trim() compares in the time of one unit.
	trimSpeed = 64
	// maxDepth bounds a tree, for it is walked recursively: names in names, as in
	// a.b.c, nest it, too.
	maxDepth = 1024
	// maxProgram bounds the instructions of a regular expression.
	maxProgram = 10_000
	// maxItems bounds a list that [] makes of lists: an expression could double it
	// again and again.
	maxItems = 200_000
)

// ErrTooLarge is wrapped by errors about a bound of this package.
var ErrTooLarge = function.ErrTooLarge

// checkResult refuses a value that costs more than maxResult to traverse. It stops at the bound,
// so that a value which refers to itself many times over is refused as cheaply as any other.
func checkResult(value any) error {
	free := meter{left: maxWork}
	return free.walk(value)
}

package cel

// The limits of foreign expressions, in addition to the bounds of internal/cost.
const (
	// maxExpression bounds an expression's text in bytes. The longest of the public
	// policy library has under 4,000.
	maxExpression = 64 << 10
	// maxCopying bounds optMap() and optFlatMap() in an expression: they copy their receiver, and
	// the type check of ten in a row takes the library seconds.
	maxCopying = 6
	// maxComputedMaps bounds the maps with non-constant keys in an expression: each may double
	// the size of a type, and the library writes types out.
	maxComputedMaps = 8
	// maxNodes bounds the parts of an expression once macros are written out.
	maxNodes = 20_000
	// maxNesting bounds brackets in brackets, for the parser is recursive.
	maxNesting = 100
	// maxVariables bounds the variables of one document, because their evaluation nests.
	maxVariables = 256
	// maxTotalCost bounds all that is evaluated in one Activation: the number that
	// Kubernetes allows all expressions of one policy, about 1 s.
	maxTotalCost = 10_000_000
	// stepNodes is how many parts of an expression are evaluated for one unit of cost; a step of
	// a loop costs as much as the whole expression.
	stepNodes = 4
	// checkEvery is the number of loop steps between checks of the context.
	checkEvery = 100
	// maxWorlds bounds how often an expression is evaluated to find out whether open
	// counts matter: six images with three values each are 729.
	maxWorlds = 1024
	// maxAsked bounds the different questions to the outside in one Activation.
	maxAsked = 100
	// maxPrecision bounds the digits that format() writes.
	maxPrecision = 100
)

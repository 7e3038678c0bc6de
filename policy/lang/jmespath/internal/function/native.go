package function

// Natives are the library's own functions that remain in use, with their arguments. The library implements
// them.
func Natives() map[string]Function {
	number, texts, list := []Kind{Number}, Strings(2), []Kind{Array}
	table := map[string]Function{
		"abs": {Arguments: number}, "ceil": {Arguments: number}, "floor": {Arguments: number},
		"starts_with": {Arguments: texts}, "ends_with": {Arguments: texts},
		"avg": {Arguments: list}, "max": {Arguments: list}, "min": {Arguments: list}, "sort": {Arguments: list},
		"contains": {Arguments: []Kind{Array | String, Anything}}, "length": {Arguments: []Kind{String | Array | Object}},
		"reverse": {Arguments: []Kind{Array | String}}, "to_array": {Arguments: []Kind{Anything}}, "type": {Arguments: []Kind{Anything}},
		"merge": {Arguments: []Kind{Object}, Variadic: true}, "not_null": {Arguments: []Kind{Anything}, Variadic: true},
	}
	for name, f := range table {
		f.Shallow = true
		table[name] = f
	}
	for name := range ExpressionAt() {
		table[name] = Function{Arguments: []Kind{Anything, Anything}, Native: true}
	}
	return table
}

// ExpressionAt lists the functions that take an expression and an array, and as which argument the expression.
func ExpressionAt() map[string]int {
	return map[string]int{"map": 0, "sort_by": 1, "max_by": 1, "min_by": 1}
}

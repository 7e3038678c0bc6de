// Package spelling finds the name that a misspelt one was meant to be, and words the suggestion.
package spelling

import "strings"

// Nearest returns the most similar name to a misspelt one, or "".
func Nearest(name string, names []string) string {
	best, closest := "", min(2, len(name)/3)+1
	for _, candidate := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < closest {
			best, closest = candidate, d
		}
	}
	return best
}

// leastCompletion is the number of letters from which the beginning of a name suggests the name.
const leastCompletion = 3

// Similar returns the name that a misspelt or unfinished one was meant to be, or "": the most similar
// one, else the only one that begins so.
func Similar(name string, names []string) string {
	if nearest := Nearest(name, names); nearest != "" || len(name) < leastCompletion {
		return nearest
	}
	found := ""
	for _, candidate := range names {
		if strings.HasPrefix(strings.ToLower(candidate), strings.ToLower(name)) {
			if found != "" {
				return ""
			}
			found = candidate
		}
	}
	return found
}

// DidYouMean returns the end of a message about an unknown name, with the name that Nearest or Similar
// found; empty for none.
func DidYouMean(found string) string {
	if found == "" {
		return ""
	}
	return ": did you mean " + found + "?"
}

// distance is how many letters must be put in, left out, changed or swapped with
// their neighbour to make one text of the other; texts too long to be a field are
// far from everything.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

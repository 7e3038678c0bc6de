package cue

import "fmt"

const (
	// maxNodes bounds the values in the data: more than those of a large image's SBOM.
	maxNodes = 50_000
	// maxRounds bounds the rounds of loops over lists that do not depend on one
	// another.
	maxRounds = 20_000
)

// size is how large data is.
type size struct{ nodes, depth, widest, longest int }

// measure adds up decoded JSON. The widest of its lists and objects, and the longest
// of its texts that may be taken apart, bound a loop.
func (s *size) measure(data any, depth int) {
	s.nodes++
	s.depth = max(s.depth, depth)
	if s.nodes > maxNodes || depth > maxDepth {
		return
	}
	switch data := data.(type) {
	case string:
		s.longest = max(s.longest, len(data))
	case map[string]any:
		s.widest = max(s.widest, len(data))
		for _, value := range data {
			s.measure(value, depth+1)
		}
	case []any:
		s.widest = max(s.widest, len(data))
		for _, value := range data {
			s.measure(value, depth+1)
		}
	}
}

// affordable refuses data for which the evaluation would exceed its time.
func (c *Condition) affordable(data any) error {
	var s size
	s.measure(data, 0)
	widest := max(s.widest, c.widest)
	if c.splits {
		widest = max(widest, s.longest)
	}
	rounds := 1
	for range c.loops {
		rounds = times(rounds, widest)
	}
	switch {
	case s.nodes > maxNodes, c.splits && s.longest > maxNodes:
		return fmt.Errorf("the data has more than %d values, or letters in a text that is taken apart", maxNodes)
	case s.depth > maxDepth:
		return fmt.Errorf("the data is nested deeper than %d", maxDepth)
	case c.loops > 1 && rounds > maxRounds:
		return fmt.Errorf("%d loops over lists of %d take more than %d iterations: loop over the results of the outer one, or write it in Rego", c.loops, widest, maxRounds)
	}
	return nil
}

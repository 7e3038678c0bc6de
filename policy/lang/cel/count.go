package cel

import "fmt"

// Count is the result of a function with an incomplete count: at least Lower, and at most Upper
// if every entry that could not be read counted too. An expression over it is evaluated for each
// possible value; if the results differ, the evaluation is an *UnknownError with the gaps. In the
// expression it is an ordinary int.
type Count struct {
	// Lower is the number of confirmed entries; Upper is not below it.
	Lower, Upper int64
	// Gaps are the errors of the entries that could not be read. There is at least one if Upper
	// is above Lower, and none is needed if they are equal.
	Gaps []error
}

// known reports whether there is nothing to find out.
func (c Count) known() bool { return c.Lower == c.Upper }

func (c Count) check() error {
	if c.Lower > c.Upper {
		return fmt.Errorf("a count from %d to %d", c.Lower, c.Upper)
	}
	if !c.known() && len(c.Gaps) == 0 {
		return fmt.Errorf("a count from %d to %d without a gap", c.Lower, c.Upper)
	}
	return nil
}

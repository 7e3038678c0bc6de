package cel

import "fmt"

// Count is what a function returns that could count only in part: at least Lower,
// and at most Upper if everything that could not be looked at counted too. An
// expression over it is evaluated for what it may be; when the result differs it is
// an *UnknownError with the gaps. In the expression it is an int like any other.
type Count struct {
	// Lower is what is known to be there; Upper is not below it.
	Lower, Upper int64
	// Gaps say what could not be looked at. There is at least one when Upper is
	// above Lower, and none is needed when they are equal.
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

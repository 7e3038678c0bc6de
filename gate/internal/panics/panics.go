// Package panics turns panics into errors: one on a goroutine of its own would end the process,
// and with it every other evaluation.
package panics

import "fmt"

// Catch runs a function, and returns its panic as an error.
func Catch(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", p)
		}
	}()
	do()
	return nil
}

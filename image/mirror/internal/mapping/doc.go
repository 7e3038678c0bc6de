// Package mapping answers: what is a name called at a mirror, and which name was
// that?
//
// A Mapping is a template of components, so that whatever it makes can be taken
// apart in one way only; what could not be is refused when it is read.
package mapping

// Package mutants answers: which checks could be taken out of the code that decides, or
// turned round, without any test failing?
//
// It changes one check at a time and runs the tests that reach it. A mutant that makes a
// test fail is killed; one that does not has survived, and is either the sign of a test
// that is missing or listed under survivors, with the reason why it does not matter.
//
// The mutators are ooze's (github.com/gtramontina/ooze) for comparisons, and a few of our
// own in its form, for what decides here is mostly an if that returns, and ooze takes none
// of those away. The way the tests are run is our own, too: all mutants of a package are
// compiled into one test binary, each function with its changed bodies beside the right
// one, and the environment selects the one that is alive. Building a binary for each of
// them, as ooze does, takes a hundred times as long.
package mutants

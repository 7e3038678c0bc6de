// Package supplychain asks: which modules is this product made of, may it be shipped, and is
// a vulnerability known in any?
//
// Every module that is linked into a program is checked, as Go's own list has it.
// Licences are found by their texts. govulncheck reads the database in Go's format
// (OSV 1.x): the public one where there is a network, by a target of its own;
// here a test shows that it finds a database's entry.
package supplychain

// Package supplychain asks: what is this product made of, may it be shipped, and is
// anything of it known to be broken?
//
// Every module that is linked into a program is looked at, as Go's own list has it.
// Licences are found by their texts. govulncheck reads the database in Go's format
// (OSV 1.x): the public one where there is a network, which a target of its own asks;
// here it is shown to find what a database tells.
package supplychain

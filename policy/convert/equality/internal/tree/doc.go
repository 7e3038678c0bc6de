// Package tree reads and changes decoded JSON (RFC 8259) at the paths that policies read.
package tree

// Package bill writes the software bill of materials (SBOM) of a Go program.
//
// The Go toolchain embeds the linked modules in each program, with their versions and checksums.
// Write converts that to an SPDX 2.3 document in JSON (https://spdx.github.io/spdx-spec/v2.3/). It
// does not scan folders, and equal programs give equal bytes.
package bill

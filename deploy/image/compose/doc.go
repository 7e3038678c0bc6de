// Package compose builds the container images of the programs.
//
// For each platform, an image has a base and one program. The base contains accounts, certificate
// authorities, home and /tmp; it has no shell and no other executable. An index lists the
// platforms. Each image and the index have a bill of materials, as an artifact that refers to them.
// The format is that of the OCI image specification 1.1
// (https://github.com/opencontainers/image-spec).
//
// Builds are reproducible: equal programs and descriptions give equal bytes, independent of the
// user, the folder and the time.
package compose

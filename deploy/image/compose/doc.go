// Package compose answers: which bytes are the image of these programs?
//
// An image is a base that is composed here (accounts, certificate authorities,
// home and /tmp; no shell and nothing else to run) and one program, for each
// platform; an index of the platforms; and a bill of materials beside each of
// them, as an artifact that refers to it. The form is the OCI image
// specification 1.1's (https://github.com/opencontainers/image-spec).
//
// Equal programs and equal descriptions give equal bytes: whoever builds it, in
// whichever folder, at whatever time.
package compose

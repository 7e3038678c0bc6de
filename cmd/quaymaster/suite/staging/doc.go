// Package staging answers: which images would there be, signed by whom, if a suite's
// words were true?
//
// It builds the images that a suite describes in a registry on loopback, and signs them
// under keys and a Sigstore that live for one run, as cosign (legacy signatures and
// Sigstore bundles v0.3) and notation do. A policy names real keys: a throw-away key
// takes the place of the one that it stands for. Images of OCI layouts (version 1.0.0)
// are read from there, with the signatures that they have.
package staging

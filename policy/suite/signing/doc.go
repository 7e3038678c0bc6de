// Package signing builds and signs the images that a suite describes.
//
// It pushes the images to a registry on loopback, and signs them with keys and a Sigstore that
// exist for one run, as cosign (legacy signatures and Sigstore bundles v0.3) and notation do. A
// policy names real keys: a throw-away key replaces the real key in the policy. Images of OCI
// layouts (version 1.0.0) are read from the layout, with their signatures.
package signing

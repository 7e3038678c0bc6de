// Package imageverifier implements containerd's contract for image verifier binaries
// (docs/image-verification.md and pkg/imageverifier/bindir, as of containerd 2.1): arguments and
// a descriptor in, a reason and an exit status out. Input that does not match the contract is an
// error, and the caller denies it.
//
// The package also reads the settings, because two programs share them: quaymaster-node, which
// sends requests to a gateway, and quaymaster, which verifies locally.
//
// The package opens no connection and imports no verifier, so that quaymaster-node stays small.
package imageverifier

// Package imageverifier answers: what does containerd ask an image verifier, and
// in which words does it take the answer?
//
// The contract is containerd's for image verifier binaries (docs/image-verification.md
// and pkg/imageverifier/bindir, as of containerd 2.1): arguments and a descriptor in,
// a reason and an exit status out. Whatever is not understood is no question, and is
// to be denied. The settings are read here, too, because two programs share them:
// quaymaster-node, which asks a gateway, and quaymaster, which looks for itself.
//
// The package opens no connection and knows no verifier, so that quaymaster-node
// stays small.
package imageverifier

// Package release asks: does a release verify itself before it is published?
//
// The scripts of deploy/release run as the workflow runs them: real cosign, real
// helm, a real registry, our own program, and a key in the place of GitHub's
// identity. Between the steps something is spoilt, and then nothing may be tagged.
package release

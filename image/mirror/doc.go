// Package mirror answers: under which other names is an image served, and whose
// copy is it?
//
// It is a mapping of names and asks nobody. A Set is made of documents: our own
// RegistryMirror (quaymaster.dev/v1alpha1), OpenShift's ImageDigestMirrorSet and
// ImageTagMirrorSet (config.openshift.io/v1), and ConfigMaps of pairs
// "registry: host/prefix". Each mapping can be inverted, so that an image which is
// named by its copy is judged by its source's names too; a mapping that cannot be is
// refused when it is read.
//
// A copy is recognised under each spelling of its name, and under the other names
// that Amazon ECR and IPv4 addresses have by their form. A further name that DNS has
// for a mirror is not known here: list it as a target too.
//
// OpenShift's kinds are read as its API reference for 4.x describes them.
package mirror

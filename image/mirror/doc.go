// Package mirror maps image names to their mirrors, and the names of copies back to their
// sources. It sends no requests.
//
// A Set is made of documents: RegistryMirror (quaymaster.dev/v1alpha1), OpenShift's
// ImageDigestMirrorSet and ImageTagMirrorSet (config.openshift.io/v1), and ConfigMaps of pairs
// "registry: host/prefix". Each mapping can be inverted, so that policies for the source's names
// also apply to an image that is named by its copy. A mapping without an inverse is refused when
// it is loaded.
//
// A source matches, and a copy is recognised, under each form of its name, and under the other names
// that Docker Hub, Amazon ECR, Google's registries and IPv4 addresses have by their form. A DNS alias
// is not recognised: list it as a source or target too.
//
// OpenShift's kinds follow its API reference for 4.x.
package mirror

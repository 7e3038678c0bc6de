// Package mirrors is the component that supplies the mappings of mirrors: RegistryMirrors of the
// cluster, ConfigMaps and files. A document that becomes invalid keeps its last valid version. It
// reports their state, and follows the availability of their registries.
package mirrors

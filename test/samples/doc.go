// Package samples asks: do the image policies of other projects mean here
// the same as there?
//
// Each policy of a folder is loaded as it is, but for parts that are not available: its
// public keys, certificates, key management services, issuers and registries are
// exchanged for those of the test, in the tree of the document, by the form and
// the name of each value; and every policy gets the same name. Then images are signed and attested, well and badly, with
// the real programs (cosign 2 and 3, notation-go), Fulcio and a timestamp
// authority, and the real quaymaster judges objects that run them. The
// transparency logs stay in force: their entries are required as the policy requires them.
//
// The samples of other projects are where QUAYMASTER_SAMPLES points and are
// skipped without it; two policies of our own go the same way everywhere.
package samples

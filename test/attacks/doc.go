// Package attacks tests known attacks on tools of this field.
//
// Each case is one attack as a short script: the attacker's steps, the expected result and
// the source. It is played at the endpoints that it names, with the product's own parts: the
// gate as the command line and the gateway wire it, the program itself, and the webhooks'
// endpoints over HTTP. Registries and signers come from registry/registrytest and
// verify/verifytest. A script must be refused something and admitted something that differs
// in the one thing that is wrong: a product that refuses everything fails here, too.
//
// docs/engineering/attacks.md is written from the cases (go test ./attacks -update).
package attacks

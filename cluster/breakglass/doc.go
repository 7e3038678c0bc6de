// Package breakglass manages namespaces with a break-glass label, for which verification is
// disabled.
//
// The API server calls no admission webhook of the gateway for a namespace with the label. A
// ValidatingAdmissionPolicy restricts the users that may set the label, and requires a reason and
// an expiry time as annotations. It cannot react to the expiry, so a Keeper removes an expired or
// invalid label. The Keeper reports each namespace that is opened, changed or closed, and
// restores the list of open namespaces after a restart.
package breakglass

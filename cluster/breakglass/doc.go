// Package breakglass answers: which namespaces are open to what nobody proved, and which
// of them must be closed?
//
// A namespace is open while it carries a label: the API server then asks no gateway about
// it. Who may set the label, and that a reason and an end stand beside it, is decided by
// the API server, too (ValidatingAdmissionPolicy). What it cannot do for want of a clock is
// done here: a Keeper takes the label off when its time is over, and where it ought not to
// be, tells of each namespace that was opened, changed and closed, and knows after a
// restart which ones were open before.
package breakglass

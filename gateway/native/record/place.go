package record

import "strings"

// Place is where a policy is evaluated at admission.
type Place string

// The places.
const (
	// InServer means that the API server evaluates it itself.
	InServer Place = "API server"
	// InBoth means that its webhook does as well, since nobody would restore its native form.
	InBoth Place = "both"
	// InWebhook means that its webhook alone is known to.
	InWebhook Place = "webhook"
)

// The texts, by which PlaceIn finds them again.
const (
	inServer  = "the API server evaluates it itself: its denials are in the audit log of the API server, and not in the decision log"
	inBoth    = "the API server evaluates it itself, and so does the webhook: no process with the role native leads"
	inWebhook = "it stays in the webhook: "
)

// Text says where a policy is evaluated, for the message of a condition. Reason is that of its state, for InWebhook.
func (p Place) Text(reason string) string {
	switch p {
	case InServer:
		return inServer
	case InBoth:
		return inBoth
	}
	return inWebhook + reason
}

// PlaceIn returns the place that a message with a Text names, and the reason; empty if it names none.
func PlaceIn(message string) (place Place, reason string) {
	if _, reason, found := strings.Cut(message, inWebhook); found {
		return InWebhook, reason
	}
	for _, p := range []Place{InServer, InBoth} {
		if strings.Contains(message, p.Text("")) {
			return p, ""
		}
	}
	return "", ""
}

package verify

// Action is what happens when one of notation's checks fails.
type Action string

// The actions of the Notary Project's trust policy specification 1.0.
const (
	Enforce Action = ""     // the signature is refused; the zero value
	Note    Action = "log"  // the failure is noted in the fact
	Skip    Action = "skip" // the check is not made
)

// Level is the Notary Project's verification level as its table of check to
// action. Integrity is always enforced, so it has no entry. The zero value is
// the level "strict".
type Level struct {
	Authenticity       Action `json:"authenticity,omitempty"`
	AuthenticTimestamp Action `json:"authenticTimestamp,omitempty"`
	Expiry             Action `json:"expiry,omitempty"`
	Revocation         Action `json:"revocation,omitempty"`
}

// Strict enforces every check. The named level "skip" has no function here, because a policy that
// verifies nothing names no authority.
func Strict() Level { return Level{} }

// Permissive enforces authenticity, and notes the rest.
func Permissive() Level {
	return Level{AuthenticTimestamp: Note, Expiry: Note, Revocation: Note}
}

// Audit notes every failed check but integrity.
func Audit() Level {
	return Level{Authenticity: Note, AuthenticTimestamp: Note, Expiry: Note, Revocation: Note}
}

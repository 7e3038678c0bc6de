package findings

// Unstated is a finding while a VEX document is unread: it may excuse the finding, or confirm what the read
// ones excuse. It implements the objects of package cel of which members may be unknown.
type Unstated struct {
	// Finding is an element of Report.Values.
	Finding map[string]any
	// Unread is why the document is unread.
	Unread error
}

// Member implements cel.PartialObject.
func (u Unstated) Member(name string) (any, bool) {
	if u.Unknown(name) != nil {
		return nil, false
	}
	value, ok := u.Finding[name]
	return value, ok
}

// Unknown implements cel.PartialObject.
func (u Unstated) Unknown(name string) error {
	if name == "status" || name == "justification" || name == "statedBy" {
		return u.Unread
	}
	return nil
}

// Members implements cel.PartialObject.
func (u Unstated) Members() (map[string]any, error) { return nil, u.Unread }

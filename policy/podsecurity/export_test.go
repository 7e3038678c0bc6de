package podsecurity

// ControlOf returns the name of the control that a check belongs to.
func ControlOf(check string) string { return controlOf(check).name }

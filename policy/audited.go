package policy

// Audited returns a policy that finds what another one finds, and denies nothing: its
// failures, and what could not be looked at, are told and reported. What changes or makes
// objects goes on. by says for people who wants it so, as in "the setting policies.audit";
// it must not be empty, or nothing is changed.
func Audited(p *Policy, by string) *Policy {
	if by == "" || p.AuditedBy != "" {
		return p
	}
	made := *p
	made.AuditedBy, made.AuditOnly = by, true
	return &made
}

// action is what a failure of one of the policy's rules does.
func (p *Policy) action(own Action) Action {
	if p.AuditedBy != "" && !own.Admits() {
		return Audit
	}
	return own
}

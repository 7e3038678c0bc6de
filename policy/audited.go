package policy

// Audited returns a copy of a policy that evaluates the same rules and denies nothing: it reports
// failures and errors. Mutation and generation still apply. by names the source of the change for
// messages, as in "the setting policies.audit"; if it is empty, nothing is changed.
func Audited(p *Policy, by string) *Policy {
	if by == "" || p.AuditedBy != "" {
		return p
	}
	made := *p
	made.AuditedBy, made.AuditOnly = by, true
	return &made
}

// EffectOf returns the effect of a failure of one of the policy's rules.
func (p *Policy) EffectOf(own Action) Action {
	if p.AuditedBy != "" && !own.Admits() {
		return Audit
	}
	return own
}

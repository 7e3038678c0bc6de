package builtin

// Operations are the operations of an AdmissionRequest (admission.k8s.io/v1).
func Operations() []string { return []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} }

// Package equality compares a policy with the one that it was converted to: it makes objects from the paths and
// values that both read, evaluates both side by side, and reports each difference with the smallest object that
// shows it. Objects are Kubernetes' (1.37); policies are in every dialect of this gateway.
package equality

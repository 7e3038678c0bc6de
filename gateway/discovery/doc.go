// Package discovery follows the resources that the API server serves, for policies that name
// them (the Kubernetes API's aggregated discovery).
package discovery

// Package policycount counts the results of each policy and rule, in all and over time.
package policycount

// Package globals is the component that keeps the values of Kyverno's GlobalContextEntries
// (kyverno.io/v2) up to date in every replica, and reports their status.
package globals

// Package view has the types of the inventory's content, as the dashboard's API writes them
// (docs/dashboard.md).
package view

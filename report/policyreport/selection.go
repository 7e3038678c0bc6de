package policyreport

import "github.com/quaymaster/quaymaster/report/policyreport/internal/merge"

// Selection selects the results with an entry. The zero value selects all.
type Selection = merge.Selection

package policyreport

import "github.com/quaymaster/quaymaster/report/policyreport/internal/merge"

// Selection says which results a report shows. The zero one shows all.
type Selection = merge.Selection

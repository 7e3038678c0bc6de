package policies

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/policystate"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/report"
)

// list is the JSON output.
type list struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Items      []policystate.Entry `json:"items"`
}

// mostKinds bounds the kinds in a line of text; JSON has all.
const mostKinds = 4

// inAuditLog is said once, if the API server enforces a policy.
const inAuditLog = "Denials by the API server are in its audit log, and not in the gateway's decision log.\n"

// table is the text output: a line for each entry, and its message below. Where policies are enforced is a column if
// that is known of one.
func table(entries []policystate.Entry) string {
	if len(entries) == 0 {
		return "no policies\n"
	}
	rows := [][]string{{"POLICY", "MODE", "READY", "RULES", "ENFORCED BY", "KINDS"}}
	native, known := false, false
	for _, e := range entries {
		kinds := strings.Join(e.Kinds[:min(len(e.Kinds), mostKinds)], ",")
		if more := len(e.Kinds) - mostKinds; more > 0 {
			kinds += ",+" + strconv.Itoa(more)
		}
		rows = append(rows, []string{report.Clean(e.ID), dash(e.Mode), e.Ready, strconv.Itoa(len(e.Rules)), dash(string(e.EnforcedBy)), dash(report.Clean(kinds))})
		known, native = known || e.EnforcedBy != "", native || e.EnforcedBy == record.InServer || e.EnforcedBy == record.InBoth
	}
	if !known {
		for i, row := range rows {
			rows[i] = slices.Delete(row, 4, 5)
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var text strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			if i+1 < len(row) {
				cell += strings.Repeat(" ", widths[i]-len(cell)+2)
			}
			text.WriteString(cell)
		}
		text.WriteString("\n")
		if n == 0 {
			continue
		}
		if e := entries[n-1]; e.Message != "" && (e.Ready != "True" || e.State != string(catalog.Ours)) {
			text.WriteString("    " + report.Clean(strings.TrimPrefix(e.Reason+": ", ": ")+e.Message) + "\n")
		} else if e.Stays != "" {
			text.WriteString("    it stays in the webhook: " + report.Clean(e.Stays) + "\n")
		}
	}
	if native {
		text.WriteString(inAuditLog)
	}
	return text.String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

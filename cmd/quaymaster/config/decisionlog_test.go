package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecisionLogSettings(t *testing.T) {
	const rest = "standalone: true\npolicies: {folders: [/p]}\n"
	for _, row := range []struct {
		reason, settings, complaint string
	}{
		{"a folder", "folder: /log", ""},
		{"all of it", "folder: /log, stdout: true, fsync: always, onFailure: continue, flushTimeout: 1s, fileSize: 1Mi, fileAge: 1h, totalSize: 10Mi, totalAge: 720h, queue: 10, webhook: {url: 'https://c.example'}, otlp: {endpoint: 'http://c:4318'}", ""},
		{"standard output alone", "stdout: true", ""},
		{"nothing is written", "fsync: always", "without a folder or stdout there is none"},
		{"a relative folder", "folder: log", "want an absolute path"},
		{"another word", "folder: /log, fsync: often", "want always, interval or never"},
		{"no request waits", "folder: /log, onFailure: deny", "are for decisionLog.fsync: always"},
		{"too long a wait", "folder: /log, fsync: always, flushTimeout: 1m", "at most 10s"},
		{"lines have no place to wait", "stdout: true, webhook: {url: 'https://c.example'}", "need decisionLog.folder"},
		{"no size", "folder: /log, fileSize: much", "want a size such as 64Mi"},
		{"less in all than a file", "folder: /log, totalSize: 1Mi", "at least two files"},
		{"a token without a webhook", "folder: /log, webhook: {tokenFile: /t}", "decisionLog.webhook.url is required"},
	} {
		_, err := Parse([]byte(head + rest + "decisionLog: {" + row.settings + "}\n"))
		if row.complaint == "" && err != nil || row.complaint != "" && (err == nil || !strings.Contains(err.Error(), row.complaint)) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.complaint)
		}
	}
	var c Configuration
	c.fill()
	if text, err := json.Marshal(c.DecisionLog); err != nil || string(text) != "{}" {
		t.Errorf("a disabled log has settings: %s, %v", text, err)
	}
}

package audit

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// changed passes on decisions of scans that differ from the last one about the object: each round
// evaluates everything, and most results are unchanged. It is a report.Sink of one scan, and not
// for concurrent use.
type changed struct {
	to report.Sink
	// lost counts the decisions that the sink has lost, and heard is its last value.
	lost  func() uint64
	heard uint64
	// most bounds the objects among the newer, and among the older.
	most int
	// older and newer are the last results of objects. Unused entries are dropped with the older
	// ones once the newer ones reach the bound.
	older, newer map[sum]sum
}

// sum identifies an object, or its result.
type sum [16]byte

// maxChanged is that bound, at some 50 bytes for each object. In larger clusters, some unchanged
// results are written again in each round.
const maxChanged = 300_000

// Take implements report.Sink. After a loss, all results are written again, because the lost ones
// are not known.
func (n *changed) Take(d report.Decided) {
	if lost := n.lost(); lost != n.heard {
		n.heard, n.older, n.newer = lost, nil, nil
	}
	of, said := sumsOf(d)
	known, ok := n.newer[of]
	if !ok {
		known, ok = n.older[of]
	}
	n.remember(of, said)
	if !ok || known != said {
		n.to.Take(d)
	}
}

func (n *changed) remember(of, said sum) {
	if _, known := n.newer[of]; n.newer == nil || !known && len(n.newer) >= n.most {
		n.older, n.newer = n.newer, map[sum]sum{}
	}
	n.newer[of] = said
}

// relevant holds the relevant part of a log line: without messages, evidence or times, and
// without hashes of all policies and of trust.
type relevant struct {
	Container, Written, Digest, Target string
	Result                             gate.Result
	Codes                              []policy.Code
	Override                           string
	Rules                              []relevantRule
}

type relevantRule struct {
	Policy, Hash, Rule, Entry, Exception string
	Result                               policy.Result
	Action                               policy.Action
	Code                                 policy.Code
}

// sumsOf returns the sums of the object and of its result.
func sumsOf(d report.Decided) (of, said sum) {
	lines := decisionlog.Decisions(d)
	all := make([]relevant, 0, len(lines))
	for i := range lines {
		all = append(all, relevantOf(&lines[i]))
	}
	return sumOf(d.Resource()), sumOf(all)
}

func relevantOf(line *decisionlog.Decision) relevant {
	t := relevant{Result: line.Result, Override: line.Override}
	if i := line.Image; i != nil {
		t.Container, t.Written, t.Digest, t.Target = i.Container, i.Written, i.Digest, i.Target
	}
	for _, r := range line.Reasons {
		t.Codes = append(t.Codes, r.Code)
	}
	t.Codes = append(t.Codes, "") // between reasons and warnings
	for _, r := range line.Warnings {
		t.Codes = append(t.Codes, r.Code)
	}
	for _, r := range line.Rules {
		rule := relevantRule{Policy: r.Policy, Hash: r.Hash, Rule: r.Rule, Entry: r.Entry, Exception: r.Exception, Result: r.Result, Action: r.Action}
		if r.Reason != nil {
			rule.Code = r.Reason.Code
		}
		t.Rules = append(t.Rules, rule)
	}
	return t
}

func sumOf(what any) (s sum) {
	text, err := json.Marshal(what)
	if err != nil {
		return s // texts and lists of them can always be encoded
	}
	whole := sha256.Sum256(text)
	copy(s[:], whole[:])
	return s
}

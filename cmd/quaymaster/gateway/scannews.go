package gateway

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// news hands on what scans decide where it is not what it handed on about the object
// before: each round looks at everything, and mostly finds what it was. It is a
// report.Sink of one scan, and not for concurrent use.
type news struct {
	to report.Sink
	// lost counts what the sink could not keep, and heard is what it said last.
	lost  func() uint64
	heard uint64
	// most bounds the objects among the newer, and among the older.
	most int
	// older and newer are what was said of objects: what nobody asks about any more goes
	// with the older ones once there is no room among the newer.
	older, newer map[sum]sum
}

// sum stands for an object, or for what is said of it.
type sum [16]byte

// maxNews is how many objects that is, at some 50 bytes each. Of a cluster with more, some
// are written again in each round.
const maxNews = 300_000

// Take implements report.Sink. Where anything was lost, nobody knows what, and all is told
// again.
func (n *news) Take(d report.Decided) {
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

func (n *news) remember(of, said sum) {
	if _, known := n.newer[of]; n.newer == nil || !known && len(n.newer) >= n.most {
		n.older, n.newer = n.newer, map[sum]sum{}
	}
	n.newer[of] = said
}

// newsLine is what makes a line of the log news: not messages, evidence or times, nor hashes
// of all policies and of trust.
type newsLine struct {
	Container, Written, Digest, Target string
	Answer                             gate.Answer
	Codes                              []policy.Code
	Override                           string
	Rules                              []newsRule
}

type newsRule struct {
	Policy, Hash, Rule, Entry, Exception string
	Result                               policy.Result
	Action                               policy.Action
	Code                                 policy.Code
}

// sumsOf returns what stands for the object, and for what is said of it.
func sumsOf(d report.Decided) (of, said sum) {
	lines := decisionlog.Decisions(d)
	all := make([]newsLine, 0, len(lines))
	for i := range lines {
		all = append(all, newsOf(&lines[i]))
	}
	return sumOf(d.Resource()), sumOf(all)
}

func newsOf(line *decisionlog.Decision) newsLine {
	t := newsLine{Answer: line.Answer, Override: line.Override}
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
		rule := newsRule{Policy: r.Policy, Hash: r.Hash, Rule: r.Rule, Entry: r.Entry, Exception: r.Exception, Result: r.Result, Action: r.Action}
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
		return s // of texts and lists of them, which always can be
	}
	whole := sha256.Sum256(text)
	copy(s[:], whole[:])
	return s
}

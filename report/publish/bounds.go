package publish

import "time"

const (
	// maxQueue bounds the queue of decisions, each of which holds its object, of some 10 kB. The
	// worker processes thousands a second, so the queue fills only while maxPending is reached.
	maxQueue = 2_048
	// maxHeld bounds the queue in bytes, by report.Weight.
	maxHeld = 64 << 20
	// maxPending bounds the pending changes, in bytes: those of some 100,000 pods with 18 results
	// each. The others are the costs of a change, of an object in it and of a result, without
	// their texts.
	maxPending = 64 << 20
	changeCost = 600
	itemCost   = 250
	wordCost   = 16
	// maxRemembered bounds the cache of written reports, in bytes, and rememberedAge is the
	// lifetime of an entry.
	maxRemembered = 8 << 20
	rememberedAge = time.Minute
	// quiet is the time without a further change after which a report is written, and longest the
	// maximum delay. The pods of a workload are created within seconds.
	quiet   = 5 * time.Second
	longest = 15 * time.Second
	// workers is the number of reports that are written in parallel.
	workers = 4
	// maxConflicts bounds the immediate merges of one write after conflicts.
	maxConflicts = 5
	// firstPause and longestPause bound the pauses between attempts, which double. maxTries
	// bounds the attempts of a change: about half an hour.
	firstPause   = time.Second
	longestPause = 2 * time.Minute
	maxTries     = 20
	// lookTries bounds the lookups of a workload. After that the object's own owner reference is
	// used.
	lookTries = 3
	// absentPause is the interval of checks for an API that is not served.
	absentPause = 30 * time.Second
	// idlePause is the interval of checks for completion during shutdown.
	idlePause = 50 * time.Millisecond
	// drainTimeout bounds the last writes during shutdown.
	drainTimeout = 10 * time.Second
)

package publish

import "time"

const (
	// maxQueue bounds what was decided and is not put into words yet; each holds its
	// object, of some 10 kB. The worker takes thousands a second, so that it fills only
	// while maxPending is reached.
	maxQueue = 2_048
	// maxHeld bounds what they hold, in bytes by report.Weight.
	maxHeld = 64 << 20
	// maxPending bounds what waits to be written, in bytes: that of some 100,000 pods
	// with 18 results each. The others are what a change, an object in it and a word
	// about that cost, beside their texts.
	maxPending = 64 << 20
	changeCost = 600
	itemCost   = 250
	wordCost   = 16
	// maxRemembered bounds the reports that are remembered as they were written, in
	// bytes; rememberedAge is how long one is taken for what is there.
	maxRemembered = 8 << 20
	rememberedAge = time.Minute
	// quiet is how long nothing more must have come for a report until it is written,
	// and longest how long it waits at most: a workload's pods come within seconds of
	// one another.
	quiet   = 5 * time.Second
	longest = 15 * time.Second
	// workers is how many reports are read and written at once.
	workers = 4
	// maxConflicts bounds how often one write is merged again at once.
	maxConflicts = 5
	// firstPause and longestPause bound the pauses between tries, which double; maxTries
	// is how often a change is tried: for about half an hour.
	firstPause   = time.Second
	longestPause = 2 * time.Minute
	maxTries     = 20
	// lookTries is how often a workload is looked up before the object is taken to run
	// for who it says.
	lookTries = 3
	// absentPause is how often an API that is not served is looked for.
	absentPause = 30 * time.Second
	// idlePause is how often the end looks whether all is written.
	idlePause = 50 * time.Millisecond
	// drainTimeout bounds the last writes when the program ends.
	drainTimeout = 10 * time.Second
)

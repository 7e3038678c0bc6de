package scan

import "time"

const (
	// PageSize is how many objects one list takes: some 2 MiB of pods.
	PageSize = 250
	// maxRestarts is how often the list of one kind is begun anew in a round, where the
	// API server cannot say where to go on.
	maxRestarts = 3
	// maxTries is how often a page is asked for before the round pauses, and maxPauses how
	// often that is until its kind is given up: an API server may be away for a while.
	maxTries  = 5
	maxPauses = 20
	// firstPause and longestPause are between two tries, which double.
	firstPause   = time.Second
	longestPause = time.Minute
	// busyPause is how long a round waits before it asks again whether admission is busy,
	// and longestBusy how long one page waits at most: a gateway that always is busy is
	// scanned all the same, slowly.
	busyPause   = 100 * time.Millisecond
	longestBusy = time.Minute
	// settling is how long what policies are may go on changing before a round begins.
	settling = 5 * time.Second
	// noticing is how often the trust and the mirrors are compared, of whose changes
	// nobody tells.
	noticing = 30 * time.Second
	// catchUp is between two rounds about what a Follower may have missed.
	catchUp = time.Minute
	// saveInterval is how often the position of a round is kept. What was looked at since
	// is looked at again by who leads next.
	saveInterval = 10 * time.Second
	// DefaultInterval and MinInterval are between the beginnings of two rounds.
	DefaultInterval = time.Hour
	// MinInterval keeps a mistake from asking for everything all the time.
	MinInterval = time.Minute
	// maxRefused bounds the kinds that a Summary names, and maxSeen the objects of one
	// kind that are remembered for a Pass, at some 40 bytes each.
	maxRefused = 100
	maxSeen    = 1_000_000
	// leftAlone is how long a registry is not asked that gave no answer, and maxSilent
	// bounds how many such are remembered.
	leftAlone = 30 * time.Second
	maxSilent = 1_000
)

package scan

import "time"

const (
	// PageSize is the number of objects of one list request: some 2 MiB of pods.
	PageSize = 250
	// maxRestarts bounds the restarts of a kind's list in a round, where the API server returns
	// no continue token for an expired list.
	maxRestarts = 3
	// maxTries bounds the attempts to list a page before the round pauses. maxPauses bounds the
	// pauses before the kind is skipped: an API server may be unavailable for a while.
	maxTries  = 5
	maxPauses = 20
	// firstPause and longestPause bound the pause between two attempts, which doubles.
	firstPause   = time.Second
	longestPause = time.Minute
	// busyPause is the interval of checks whether admission is busy. longestBusy bounds the wait
	// of one page: a gateway that is always busy is still scanned, slowly.
	busyPause   = 100 * time.Millisecond
	longestBusy = time.Minute
	// settling is the time for further policy changes before a round begins.
	settling = 5 * time.Second
	// noticing is the interval at which the trust and the mirrors are compared, since they have
	// no change notification.
	noticing = 30 * time.Second
	// catchUp is the interval between two rounds for kinds that are behind in a Follower.
	catchUp = time.Minute
	// saveInterval is the interval at which the position of a round is saved. The next leader
	// repeats later evaluations.
	saveInterval = 10 * time.Second
	// DefaultInterval and MinInterval are intervals between the starts of two rounds.
	DefaultInterval = time.Hour
	// MinInterval prevents continuous scans by misconfiguration.
	MinInterval = time.Minute
	// maxRefused bounds the kinds that a Summary names, and maxSeen the objects of one kind that
	// a Pass holds, at some 40 bytes each.
	maxRefused = 100
	maxSeen    = 1_000_000
	// leftAlone is the time without requests to an unresponsive registry, and maxSilent bounds
	// the registries in that state.
	leftAlone = 30 * time.Second
	maxSilent = 1_000
)

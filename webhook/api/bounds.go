package api

import "time"

// The bounds on what a caller may ask for.
const (
	// MaxBody is the size of a body, in bytes: what a rendered chart of a large
	// application comes to. YAML takes some fifty times as much while it is read.
	MaxBody = 1 << 20
	// MaxImages is how many images one request may name, by themselves or in
	// manifests; each may cost several requests to a registry.
	MaxImages = 100
	// MaxObjects is how many objects one request may hold, most of which run nothing.
	MaxObjects = 1000
	// MaxTimeout is the longest time for an answer; the server closes connections
	// soon after it.
	MaxTimeout = 30 * time.Second
	// DefaultTimeout leaves a caller who waits 30 s time for the way there and back.
	DefaultTimeout = 25 * time.Second
	// DefaultRequests are at work at once, DefaultPerCaller those of one caller.
	DefaultRequests  = 32
	DefaultPerCaller = 8

	// maxToken bounds a token, in bytes: those of Kubernetes have about 1,200.
	maxToken = 8 << 10
	// maxAsking bounds how many tokens are looked up at once: who asks has not shown
	// yet that anybody knows him.
	maxAsking = 64
	// bodyTimeout is how long a body may take to arrive.
	bodyTimeout = 10 * time.Second
	// queueTimeout is how long a request waits for its turn.
	queueTimeout = 2 * time.Second
	// grace is what a Decider has, once time is up, to say so itself.
	grace = 100 * time.Millisecond
	// maxParsed bounds what the values of one body take in memory once they are
	// read, in bytes, by the estimate of costOf, and allParsed those of all.
	maxParsed = 24 << 20
	allParsed = 2 * maxParsed
	// maxMessage bounds an error's message, in bytes.
	maxMessage = 1 << 10

	// maxTokenFile and maxTokens bound a file of tokens.
	maxTokenFile = 256 << 10
	maxTokens    = 1000
	// minToken is what can be guessed no more: 16 characters of base64 are 96 bits.
	minToken = 16
	// fileAge is how soon a changed file counts.
	fileAge = time.Second
)

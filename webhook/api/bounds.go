package api

import "time"

// Limits on requests.
const (
	// MaxBody bounds a body, in bytes. It fits the rendered chart of a large application. Parsed
	// YAML takes about fifty times as much memory.
	MaxBody = 1 << 20
	// MaxImages bounds the images in one request, by themselves or in manifests. Each may cost
	// several requests to a registry.
	MaxImages = 100
	// MaxObjects bounds the objects in one request. Most of them run no image.
	MaxObjects = 1000
	// MaxTimeout is the longest timeout of a request. The server closes connections soon after it.
	MaxTimeout = 30 * time.Second
	// DefaultTimeout leaves network time for a client with a timeout of 30 s of its own.
	DefaultTimeout = 25 * time.Second
	// DefaultRequests bounds concurrent requests, DefaultPerCaller those of one caller.
	DefaultRequests  = 32
	DefaultPerCaller = 8

	// maxToken bounds a token, in bytes. Tokens of Kubernetes have about 1,200.
	maxToken = 8 << 10
	// maxLookups bounds concurrent token lookups. Before its lookup, a client is not authenticated.
	maxLookups = 64
	// bodyTimeout bounds the arrival of a body.
	bodyTimeout = 10 * time.Second
	// queueTimeout bounds the wait time of a request.
	queueTimeout = 2 * time.Second
	// maxParsed bounds the memory of one parsed body in bytes, as estimated by costOf, and
	// allParsed that of all concurrent ones.
	maxParsed = 24 << 20
	allParsed = 2 * maxParsed
	// maxMessage bounds an error's message, in bytes.
	maxMessage = 1 << 10

	// maxTokenFile and maxTokens bound a file of tokens.
	maxTokenFile = 256 << 10
	maxTokens    = 1000
	// minToken is the shortest token that cannot be guessed: 16 characters of base64 are 96 bits.
	minToken = 16
	// fileAge is the maximum delay until a changed file is read.
	fileAge = time.Second
)

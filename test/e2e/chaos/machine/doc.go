// Package machine answers: what does a gateway do whose disk is full, or whose clock is set?
//
// Neither has a setting, so that both are brought about beneath it: by a file system of its
// own or a limit on files, and by a standard library whose clock can be set.
package machine

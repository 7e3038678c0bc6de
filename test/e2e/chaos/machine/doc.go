// Package machine runs gateways with a full disk, or with a clock that is set.
//
// Neither has a setting, so that both are brought about beneath it: by a file system of its
// own or a limit on files, and by a changed standard library.
package machine

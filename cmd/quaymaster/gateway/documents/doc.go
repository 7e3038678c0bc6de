// Package documents loads the documents of the gateway, which are policies, mirrors and global
// context entries of the cluster, of folders and of files, and follows their changes. It compiles
// every dialect, publishes the result to decisions, and reports the state of each document.
package documents

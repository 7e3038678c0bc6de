// Package docs answers: does the documentation say what is so?
//
// It reads the pages as Markdown (CommonMark with GitHub's tables and anchors), runs
// what their console blocks show and compares what comes of it, holds the flags that
// are written anywhere against those that the program has, and follows every link.
//
// A console block has commands after "$ " and, below each, what it prints. In what is
// printed, "..." stands for anything on its line, and alone on a line for any lines. A
// command must exit with 0, each part of a pipe too, unless it says "# exit status 1" at
// its end or "echo $?" prints another status behind it. The blocks of a page run in one shell, one after another, in a folder of
// their own. A comment before a block can say that somebody else runs it, or nobody:
//
//	<!-- run by TestOfflineDocumentation -->
//	<!-- not run: needs a cloud account -->
package docs

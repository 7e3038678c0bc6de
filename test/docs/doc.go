// Package docs tests that the documentation is correct.
//
// It reads the pages as Markdown (CommonMark with GitHub's tables and anchors), runs their
// console blocks and compares the output, compares the flags that are written anywhere with
// those of the program, and follows every link.
//
// A console block has commands after "$ " and, below each, its output. In the output, "..."
// matches anything on its line, and alone on a line any lines. A command must exit with 0,
// each part of a pipe too, unless it has "# exit status 1" at its end or "echo $?" prints
// another status behind it. The blocks of a page run in one shell, one after another, in a
// folder of their own. A comment before a block can name another test that runs it, or the
// reason why no test does:
//
//	<!-- run by TestOfflineDocumentation -->
//	<!-- not run: needs a cloud account -->
package docs

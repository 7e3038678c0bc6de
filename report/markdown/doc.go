// Package markdown writes the findings of a run for the page of a CI job.
//
// Write writes a summary in GitHub Flavored Markdown (specification 0.29), for a step summary or
// a comment. Annotations writes the workflow commands of GitHub Actions that show each finding at
// its line. Both leave out content beyond the page's limits, and count it.
//
// Untrusted text is written as code only, where it cannot form a link, a mention, an image or an
// element. It is escaped so that it cannot end the code, the table row or the command.
package markdown

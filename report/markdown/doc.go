// Package markdown answers: what does a person read of a run on the page of a CI job?
//
// Write writes a summary in GitHub Flavored Markdown (specification 0.29), for a step
// summary or a comment; Annotations writes the workflow commands of GitHub Actions that
// show each finding at its line. Both leave out what would exceed the page's own
// bounds, and count it.
//
// What a stranger chose stands in code alone, where nothing is a link, a mention, a
// picture or an element; and never ends the code, the row of a table or the command
// that it stands in.
package markdown

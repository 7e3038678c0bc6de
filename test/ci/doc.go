// Package ci asks: do the GitHub Action, the GitLab template and the pre-commit hook
// let through what is signed, stop what is not, and run nothing that they are told?
//
// Their steps are taken from the files that users name, and run in an empty folder
// with a real registry and a real signature. What the CI systems do around them,
// filling inputs in and setting variables, is done here as their documentation says.
package ci

// Package ci asks: do the GitHub Action, the GitLab template and the pre-commit hook
// admit signed images, stop others, and run no part of their inputs?
//
// Their steps are taken from the files that users name, and run in an empty folder
// with a real registry and a real signature. The work of the CI systems,
// filling inputs in and setting variables, is done here as their documentation describes.
package ci

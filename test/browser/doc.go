// Package browser asks: does the dashboard show the decisions, and nothing else? And does the
// playground evaluate the documents that its user writes, once the user does?
//
// A real gateway judges images that are signed, unsigned and spoilt, as the demo's are,
// on requests as an API server sends them; and a real browser, Debian's Chromium without
// a screen, looks at its pages by the DevTools protocol, in both colour schemes, wide and
// narrow, by keyboard, and with names that would like to be scripts.
//
// Without a browser the tests are skipped with a message. With -screenshots FOLDER the pages
// are left there as pictures.
package browser

// Package browsertest drives the pages of package dashboard in a real Chromium. It is a module
// of its own, so that what drives a browser is no dependency of the project. Where no browser
// is found, its tests are skipped, which make test-browser says.
package browsertest

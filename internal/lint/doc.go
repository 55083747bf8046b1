// Package lint holds the project's rules as tests: which package may import
// which, and what source must look like. It contains nothing else.
package lint

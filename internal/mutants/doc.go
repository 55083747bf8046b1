// Package mutants proves that the tests can fail. Its tables hold faults that a
// tired programmer could make: a fence that is not checked, a sync that is
// skipped, a key of an index that is left, a counter off by one, a read that is
// not in the conflict set. Its test plants them one at a time, by an overlay of
// the source, and runs the suites that must notice.
//
// The tests of every run check that each fault still fits the source and leaves
// it well-formed. FUTURA_MUTANTS=1 plants them, which takes hours,
// FUTURA_MUTANTS=2/8 the second of eight parts, and FUTURA_MUTANT=TEXT those whose name
// contains the text.
//
// The idea is that of DeMillo, Lipton and Sayward, "Hints on Test Data
// Selection: Help for the Practicing Programmer", IEEE Computer 11(4), 1978.
package mutants

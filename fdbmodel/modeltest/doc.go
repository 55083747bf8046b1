// Package modeltest is what tests of the model share: clusters with something of
// everything in them (Populate, NewStage, NewMachine), and golden keys and
// records. The tests of package layout compare those with files, which -update
// writes.
package modeltest

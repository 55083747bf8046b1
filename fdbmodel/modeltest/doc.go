// Package modeltest contains the fixtures that tests of the model share:
// clusters with records of every kind (Populate, NewStage, NewMachine), and
// golden keys and records. The tests of package layout compare those with
// files, which -update writes.
package modeltest

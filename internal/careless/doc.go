// Package careless holds a test that uses the command futura as a careless user
// does: a random walk over all commands, with right and wrong flags, files that are
// none, several processes at once on one store, kills, pauses, full disks and closed
// outputs. A ledger outside of the stores says what must still be there at the end.
//
// FUTURA_SEED=N repeats the choices of a walk, FUTURA_CARELESS=1h sets how long it
// lasts, and FUTURA_LONG=1 makes it last minutes.
package careless

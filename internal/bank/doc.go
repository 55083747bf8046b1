// Package bank holds tests of actors whose processes are killed with kill -9, are stopped for longer than it takes
// to be declared dead, and have their clocks moved, while clients send money from account to account. What the clients
// saw is judged by three checkers: the sum of a read of all accounts, a ledger outside of the store, and porcupine on
// the history of each account. It has the embedded store, and FoundationDB with -tags fdb.
//
// FUTURA_LONG=1 has 1,000 rounds of faults, 200 on FoundationDB; FUTURA_ROUNDS has another number of them.
package bank

// Package attack has what hostile, broken and greedy clients do to a process of
// futura that listens, and a bystander: a client that works beside them and
// notes how long it waited. Its tests start the real command with few
// descriptors and hold that the process lives, that its memory and descriptors
// are bounded, and that the bystander waits no more than a second longer than a
// client of a process that nobody attacks.
package attack

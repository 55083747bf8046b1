package futures

// MaxCommitters is how many transactions of concurrent Submits are under way at
// most.
const MaxCommitters = maxCommitters

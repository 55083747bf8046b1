package futures

// MaxCommitters is the maximum number of concurrent transactions for Submits.
const MaxCommitters = maxCommitters

package read

// MaxTogether is the maximum number of futures in one read.
const MaxTogether = maxTogether

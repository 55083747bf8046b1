package read

// MaxTogether bounds the futures of one read.
const MaxTogether = maxTogether

package metering

import "github.com/futura-run/futura/fdbmodel/internal/meter"

// Kinds of workers: a peer has its id as its name.
const (
	Peer   = meter.Peer
	Worker = meter.Worker
)

// Metered is what attempts have used, Key says who has used it and when, and Keys makes its key.
type (
	Metered = meter.Metered
	Key     = meter.MeteredKey
	Keys    = meter.Keys
)

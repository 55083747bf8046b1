package layout

import (
	"fmt"
)

// ChunkSize is the size of the pieces that large values are cut into, in bytes.
const ChunkSize = 90_000

// String returns the token as it appears in the keys of chunks.
func (t Token) String() string { return fmt.Sprintf("%s.%d", t.Worker, t.Sequence) }

// Pieces returns how many chunks hold size bytes.
func Pieces(size int64) int { return int((size + ChunkSize - 1) / ChunkSize) }

package mailbox

import "github.com/futura-run/futura/fdbmodel"

// Hearers counts those who hear of mail.
func Hearers(c *fdbmodel.Cluster) int {
	h := hearersOf(c)
	return len(h.by) + int(h.number.Load())
}
